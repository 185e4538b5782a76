#include "core/ops/ops.h"
#include "layers/fields.h"
#include "layers/make_layer.h"

namespace lockstep::layers {

/// Rows of a table by integers. x (N, ...) of 0 ... input_dim - 1, embeddings (input_dim, output_dim) -> (N, ..., output_dim).
/// Floating inputs are truncated to integers. An index outside the table gives a row of NaN.
class Embedding final : public Layer {
 public:
  std::string_view type() const override { return "Embedding"; }
  void fields(Fields& fields) override {
    fields.add("input_dim", input_dim_, "rows of the table").require().at_least(1);
    fields.add("output_dim", output_dim_, "size of a row").require().at_least(1);
    fields.add("embeddings_initializer", embeddings_initializer_, "of the table");
    fields.add("embeddings_regularizer", embeddings_regularizer_, "a loss of the table");
    add_constraint(fields, "embeddings_constraint", constraint_);
    fields.add("mask_zero", mask_zero_, "false: 0 is an index like any other");
    // Keras 2 tells the length of sequences here; the input's shape says it.
    fields.ignore("input_length");
    accept_null(fields, "weights");
    accept_null(fields, "quantization_config");
    accept_null(fields, "lora_rank");
    accept_null(fields, "lora_alpha");
  }
  std::vector<Symbol> call(LayerContext& context, std::span<const Symbol> inputs) override {
    expect_inputs(context.path(), inputs, 1);
    const bool as_it_is = inputs[0].dtype() == DType::i32 || inputs[0].dtype() == DType::i64;
    const Symbol indices = as_it_is ? inputs[0] : ops::cast(inputs[0], DType::i32);
    const Symbol table = context.weight({"embeddings", {input_dim_, output_dim_}, embeddings_initializer_, true, embeddings_regularizer_, {}});
    return {ops::gather_rows(table, indices)};
  }

 private:
  int64_t input_dim_ = 1;
  int64_t output_dim_ = 1;
  std::shared_ptr<const Initializer> embeddings_initializer_ = make_initializer("uniform");
  std::shared_ptr<const Regularizer> embeddings_regularizer_;
  OnlyNull constraint_;
  OnlyFalse mask_zero_;
};

}  // namespace lockstep::layers

template std::unique_ptr<lockstep::Layer> lockstep::make_layer<lockstep::layers::Embedding>();
