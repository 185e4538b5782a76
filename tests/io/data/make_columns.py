"""Writes columns.h5, which data_test.cpp reads: every way in which HDF5 stores numbers, and what a reader must refuse. Needs h5py (3.16 was used)."""
import os
import sys

import h5py
import numpy

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "columns.h5")
rows = numpy.arange(12).reshape(4, 3)
with h5py.File(path, "w", libver=("earliest", "v110")) as file:
    good = file.create_group("good")
    good["float32"] = rows.astype("<f4")
    good["float64"] = rows.astype("<f8") / 2
    good["float16"] = rows.astype("<f2")
    good["big_endian"] = rows.astype(">i2")
    good["int64"] = rows.astype("<i8")
    good["bool"] = rows % 2 == 0
    good.create_dataset("packed", data=rows.astype("<f4"), chunks=(1, 3), compression="gzip", shuffle=True, fletcher32=True)
    good.create_dataset("chunked", data=rows.astype(">f8"), chunks=(2, 2))
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    identifier = h5py.h5d.create(good.id, b"compact", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((4,)), compact)
    identifier.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(4, dtype="u1"))
    good["soft"] = h5py.SoftLink("/good/float32")
    good["a%2Fb%25"] = rows.astype("<f4")
    good["not_finite"] = numpy.array([0, numpy.nan, 2, numpy.inf], "<f4")
    good["five"] = numpy.arange(5, dtype="<f4")

    bad = file.create_group("bad")
    bad["external_link"] = h5py.ExternalLink("other.h5", "/x")
    bad["text"] = ["a", "b"]
    bad["scalar"] = 3.0
    bad["none"] = h5py.Empty("f4")
    bad["empty"] = numpy.zeros((0, 3), "f4")
    bad.create_dataset("never_written", (4, 3), "f4")
    bad.create_dataset("external_storage", (4,), "u1", external=[("/etc/passwd", 0, 4)])
    layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(4,))
    bad.create_virtual_dataset("virtual", layout)
    lzf = bad.create_dataset("lzf", data=rows.astype("<f4"), chunks=(4, 3), compression="lzf")
print(os.path.getsize(path), file=sys.stderr)
