#include "io/model_file/keras_classes.h"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

// Sorted. The exports of keras.layers and keras.models in tf_keras 2.21 and Keras 3.15, and the operations that tf_keras writes into functional models.
constexpr std::array<std::string_view, 157> classes = {
    "AbstractRNNCell", "Activation", "ActivityRegularization", "AdaptiveAveragePooling1D", "AdaptiveAveragePooling2D", "AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling1D", "AdaptiveMaxPooling2D", "AdaptiveMaxPooling3D", "Add", "AdditiveAttention", "AlphaDropout", "Attention", "AugMix",
    "AutoContrast", "Average", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "BatchNormalization", "Bidirectional", "CategoryEncoding",
    "CenterCrop", "Concatenate", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "ConvLSTM1D", "ConvLSTM2D",
    "ConvLSTM3D", "Cropping1D", "Cropping2D", "Cropping3D", "CutMix", "Dense", "DepthwiseConv1D", "DepthwiseConv2D", "Discretization", "Dot",
    "Dropout", "ELU", "EinsumDense", "Embedding", "Equalization", "Flatten", "FlaxLayer", "Functional", "GRU", "GRUCell", "GaussianDropout",
    "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalMaxPooling1D", "GlobalMaxPooling2D",
    "GlobalMaxPooling3D", "GroupNormalization", "GroupQueryAttention", "GroupedQueryAttention", "HashedCrossing", "Hashing", "Identity", "InputLayer",
    "IntegerLookup", "JaxLayer", "LSTM", "LSTMCell", "Lambda", "Layer", "LayerNormalization", "LeakyReLU", "LocallyConnected1D", "LocallyConnected2D",
    "Masking", "MaxNumBoundingBoxes", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "Maximum", "MelSpectrogram", "Minimum", "MixUp", "Model",
    "MultiHeadAttention", "Multiply", "Normalization", "PReLU", "Permute", "Pipeline", "RMSNormalization", "RNN", "RandAugment", "RandomBrightness",
    "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomCrop", "RandomElasticTransform", "RandomErasing", "RandomFlip",
    "RandomFourierFeatures", "RandomGaussianBlur", "RandomGrayscale", "RandomHeight", "RandomHue", "RandomInvert", "RandomPerspective",
    "RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear", "RandomTranslation", "RandomWidth", "RandomZoom",
    "ReLU", "RepeatVector", "Rescaling", "Reshape", "Resizing", "ReversibleEmbedding", "STFTSpectrogram", "SeparableConv1D", "SeparableConv2D",
    "Sequential", "SimpleRNN", "SimpleRNNCell", "SlicingOpLambda", "Softmax", "Solarization", "SpatialDropout1D", "SpatialDropout2D",
    "SpatialDropout3D", "SpectralNormalization", "StackedRNNCells", "StringLookup", "Subtract", "SyncBatchNormalization", "TFOpLambda", "TFSMLayer",
    "TensorFlowOpLayer", "TextVectorization", "ThresholdedReLU", "TimeDistributed", "TorchModuleWrapper", "UnitNormalization", "UpSampling1D",
    "UpSampling2D", "UpSampling3D", "Wrapper", "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"};

static_assert(std::is_sorted(classes.begin(), classes.end()));

}  // namespace

bool is_keras_class(std::string_view name) {
  // tf_keras registers some of its own: "Custom>Adam", "Keras>...".
  for (const std::string_view package : {"keras>", "Keras>"}) {
    if (name.starts_with(package)) name.remove_prefix(package.size());
  }
  return std::binary_search(classes.begin(), classes.end(), name);
}

}  // namespace lockstep
