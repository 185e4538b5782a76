#!/usr/bin/env python3
"""Makes tests/data/models anew with real Keras and TensorFlow. Tests need none of these.

    pip install tensorflow-cpu==2.21.0 keras==3.15.1 tf_keras==2.21.0 h5py
    scripts/make_test_models.py [folder]

Values are chosen so that a test knows them: element i of weight w (in Keras's order) is w + i / 64, element i of the optimizer's
variable v (in its flat order, the iteration and the learning rate counted) is 100 + v + i / 64; the iteration is 7, the learning rate 0.125.
"""
import os
import shutil
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow", TF_USE_LEGACY_KERAS="1")

import keras as keras_3
import numpy as np
import tensorflow as tf
import tf_keras as keras_2

tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4)


def pattern(shape, start):
    count = int(np.prod(shape))
    return (start + np.arange(count) / 64).reshape(shape)


def fill_weights(model):
    for number, weight in enumerate(model.weights):
        weight.assign(pattern(weight.shape, number).astype(weight.dtype if isinstance(weight.dtype, str) else weight.dtype.as_numpy_dtype))
    return model


def fill_optimizer(model):
    optimizer = model.optimizer
    variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    for number, variable in enumerate(variables):
        name = getattr(variable, "path", None) or variable.name
        if "iter" in name:
            variable.assign(7)
        elif "learning_rate" not in name:
            variable.assign(pattern(variable.shape, 100 + number).astype("float32"))
    return model


def retrieval(K, optimizer=None):
    """Sequential, compiled, with the optimizer's state."""
    K.backend.clear_session()
    model = K.Sequential([K.layers.Input((3,), name="query"), K.layers.Dense(4, activation="relu", name="hidden"), K.layers.Dense(2, name="image_embedding")], name="retrieval")
    model.compile(optimizer or K.optimizers.Adam(learning_rate=0.125), K.losses.MeanSquaredError())
    model.fit(np.ones((2, 3), "float32"), np.ones((2, 2), "float32"), epochs=1, verbose=0)
    return fill_optimizer(fill_weights(model))


def image_embedding():
    """jobs/image_embedding.yaml: a second output that borrows the embedding layer's kernel, fresh weights, in tf_keras."""
    K = keras_2
    K.backend.clear_session()
    K.utils.set_random_seed(5)

    @K.utils.register_keras_serializable("lockstep")
    class EmbeddingDotProduct(K.layers.Layer):
        def __init__(self, embedding_layer_name, **options):
            super().__init__(**options)
            self.embedding_layer_name = embedding_layer_name

        def call(self, x):
            return tf.matmul(x, model_layers[self.embedding_layer_name].kernel, transpose_b=True)

        def get_config(self):
            return {**super().get_config(), "embedding_layer_name": self.embedding_layer_name}

    image, query = K.layers.Input((64,), name="image"), K.layers.Input((64,), name="query")
    embedding = K.layers.Dense(64, name="image_embedding")
    model_layers = {"image_embedding": embedding}
    vector = embedding(K.layers.Dense(256, activation="relu", name="hidden")(image))
    similarity = EmbeddingDotProduct("image_embedding", name="similarity")(query)
    return K.Model([image, query], [vector, similarity], name="image_embedding_model")


def nested(K):
    """A model in a model, with statistics, one layer name at two levels."""
    K.backend.clear_session()
    inner_input = K.layers.Input((3,), name="b")
    inner = K.Model(inner_input, K.layers.BatchNormalization(name="bn")(K.layers.Dense(2, name="dense")(inner_input)), name="mid")
    x = K.layers.Input((3,), name="a")
    return fill_weights(K.Model(x, K.layers.Dense(1, name="out")(inner(x)), name="outer"))


def demo(K):
    """Subclassed, without get_config: Keras 2 keeps its classes' names, nothing else."""

    class TestLayer(K.layers.Layer):
        def call(self, inputs):
            return inputs

    class Demo(K.Model):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.test_layer = TestLayer()
            self.dense_layer = K.layers.Dense(1, kernel_initializer="ones", bias_initializer="zeros")

        def call(self, inputs):
            vector = self.test_layer(inputs)
            return self.dense_layer(tf.cast(vector, tf.float32)), vector

    model = Demo(name="demo")
    model(tf.ones((6, 10), tf.int64))
    return fill_weights(model)


def dot_class(K):
    class EmbeddingDotProduct(K.layers.Layer):
        """Borrows the kernel of another layer."""

        def __init__(self, embedding_layer_name, lender=None, **arguments):
            super().__init__(**arguments)
            self.embedding_layer_name = embedding_layer_name
            object.__setattr__(self, "lender", lender)  # around the tracker: not saved as a layer of this one

        def get_config(self):
            return {**super().get_config(), "embedding_layer_name": self.embedding_layer_name}

        def call(self, x):
            return tf.matmul(x, self.lender.kernel, transpose_b=True)

        def compute_output_shape(self, shape):
            return (shape[0], self.lender.kernel.shape[0])

    return K.saving.register_keras_serializable(package="lockstep")(EmbeddingDotProduct)


def embedding_dot(K):
    """Two inputs, two outputs, the second through a borrowed kernel."""
    K.backend.clear_session()
    main = K.layers.Input((6,), name="main")
    vector = K.layers.Input((2,), name="vector")
    embedding = K.layers.Dense(2, name="image_embedding")
    embedded = embedding(K.layers.Dense(4, activation="relu", name="hidden")(main))
    product = dot_class(K)("image_embedding", embedding, name="dot_product")(vector)
    return fill_weights(K.Model([main, vector], [embedded, product], name="full_model"))


def named_checkpoint(prefix):
    """TensorFlow 1's: names for keys, a variable in two slices, slots of Adam."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        kernel = v1.get_variable("hidden/kernel", (3, 4), tf.float32, partitioner=v1.fixed_size_partitioner(2, axis=0), initializer=v1.zeros_initializer())
        bias = v1.get_variable("hidden/bias", initializer=tf.constant(pattern((4,), 1).astype("float32")))
        slots = [v1.get_variable(f"hidden/bias/{slot}", initializer=tf.constant(pattern((4,), start).astype("float32"))) for slot, start in (("Adam", 100), ("Adam_1", 101))]
        step = v1.get_variable("global_step", initializer=tf.constant(7, tf.int64))
        powers = [v1.get_variable(name, initializer=0.5) for name in ("beta1_power", "beta2_power")]
        session.run(v1.global_variables_initializer())
        whole = pattern((3, 4), 0).astype("float32")
        parts = list(kernel)
        session.run([parts[0].assign(whole[:2]), parts[1].assign(whole[2:])])
        v1.train.Saver([kernel, bias, step, *slots, *powers]).save(session, prefix, write_meta_graph=False, write_state=False)


def make_all(folder):
    def at(name):
        return os.path.join(folder, name)

    model = retrieval(keras_2)
    model.save(at("retrieval_k2.h5"))
    model.save(at("retrieval_k2.keras"))
    model.save(at("retrieval_k2_saved_model"), save_format="tf")
    model.save_weights(at("retrieval_k2_weights.h5"))
    model.save_weights(at("retrieval_k2_tf") + "/weights", save_format="tf")
    model = retrieval(keras_3)
    model.save(at("retrieval_k3.h5"))
    model.save(at("retrieval_k3.keras"))
    model.save_weights(at("retrieval_k3.weights.h5"))
    model.export(at("retrieval_k3_export"), verbose=False)
    with open(at("retrieval_k3.json"), "w") as file:
        file.write(model.to_json())
    os.makedirs(at("retrieval_k3_tf"))
    tf.train.Checkpoint(model=model).write(at("retrieval_k3_tf") + "/ckpt")
    legacy = retrieval(keras_2, keras_2.optimizers.legacy.Adam(learning_rate=0.125))
    legacy.save(at("retrieval_k2_legacy.h5"))
    os.makedirs(at("retrieval_k2_legacy_tf"))
    tf.train.Checkpoint(model=legacy, step=tf.Variable(7, dtype=tf.int64)).write(at("retrieval_k2_legacy_tf") + "/ckpt")

    for K, name in ((keras_2, "k2"), (keras_3, "k3")):
        model = nested(K)
        model.save(at(f"nested_{name}.h5"))
        model.save(at(f"nested_{name}.keras"))
        model = embedding_dot(K)
        model.save(at(f"embedding_dot_{name}." + ("h5" if K is keras_2 else "keras")))
    nested(keras_2).save(at("nested_k2_saved_model"), save_format="tf")
    image_embedding().save(at("image_embedding.h5"))
    keras_2.backend.clear_session()  # not within the scope, which it would end
    with tf.distribute.MirroredStrategy([f"/cpu:{cpu}" for cpu in range(4)]).scope():
        model = demo(keras_2)
    model.save(at("demo_saved_model"), save_format="tf")
    os.makedirs(at("named_tf"))
    named_checkpoint(at("named_tf") + "/model.ckpt-7")


def main(folder):
    """Puts what was made in the place of what was there; other files stay."""
    with tempfile.TemporaryDirectory() as made:
        make_all(made)
        for root, _, names in os.walk(made):
            for name in names:
                if name in ("checkpoint", "fingerprint.pb"):  # of no use to a reader
                    os.remove(os.path.join(root, name))
        for name in os.listdir(made):
            target = os.path.join(folder, name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(os.path.join(made, name), target)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "data", "models"))
