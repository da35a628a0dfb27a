"""The fields of CoreML specifications that are read here.

Source: ``Model.proto``, ``FeatureTypes.proto``, ``MIL.proto`` and ``NeuralNetwork.proto`` of
coremltools 9.0: these are its names and numbers. ``Empty`` is a message whose fields are not read.
"""

from dlcompiler.graph.frontends.coreml.messages import tables_of

TABLES = tables_of("""
Model: 1 specificationVersion int, 2 description Description, 303 neuralNetworkRegressor Network,
  403 neuralNetworkClassifier Network, 500 neuralNetwork Network, 502 mlProgram Program
Description: 1 input Feature*, 10 output Feature*
Feature: 1 name text, 3 type FeatureType
FeatureType: 4 imageType ImageType, 5 multiArrayType ArrayType
ImageType: 1 width int, 2 height int, 3 colorSpace int
ArrayType: 1 shape int*, 2 dataType int
Empty:
Program: 2 functions {Function}
Function: 1 inputs NamedType*, 2 opset text, 3 block_specializations {Block}
Block: 1 inputs NamedType*, 2 outputs text*, 3 operations Operation*
Operation: 1 type text, 2 inputs {Argument}, 3 outputs NamedType*, 4 blocks Block*,
  5 attributes {Value}
Argument: 1 arguments Binding*
Binding: 1 name text, 2 value Value
NamedType: 1 name text, 2 type ValueType
ValueType: 1 tensorType TensorType
TensorType: 1 dataType int, 2 rank int, 3 dimensions Dimension*
Dimension: 1 constant Constant, 2 unknown Empty
Constant: 1 size int
Value: 2 type ValueType, 3 immediateValue Immediate, 5 blobFileValue Blob
Immediate: 1 tensor TensorValue, 2 tuple Values, 3 list Values
Values: 1 values Value*
Blob: 1 fileName text, 2 offset int
TensorValue: 1 floats Floats, 2 ints Ints, 3 bools Ints, 4 strings Texts, 5 longInts Ints,
  6 doubles Doubles, 7 bytes Bytes
Floats: 1 values float*
Doubles: 1 values double*
Ints: 1 values int*
Texts: 1 values text*
Bytes: 1 values bytes

Network: 1 layers Layer*, 2 preprocessing Preprocessing*, 5 arrayInputShapeMapping int,
  6 imageInputShapeMapping int
Preprocessing: 1 featureName text, 10 scaler Scaler, 11 meanImage MeanImage
Scaler: 10 channelScale float, 20 blueBias float, 21 greenBias float, 22 redBias float,
  30 grayBias float
MeanImage: 1 meanImage float*
Weights: 1 floatValue float*, 2 float16Value bytes, 30 rawValue bytes, 31 int8RawValue bytes,
  40 quantization Quantization
Quantization: 1 numberOfBits int, 101 linearQuantization Linear,
  102 lookupTableQuantization LookUp
Linear: 1 scale float*, 2 bias float*
LookUp: 1 floatValue float*
Borders: 10 borderAmounts Edges*
Edges: 1 startEdgeSize int, 2 endEdgeSize int
ValidPadding: 1 paddingAmounts Borders
SamePadding: 1 asymmetryMode int
CompletePadding: 10 paddingAmounts int*
SamplingMode: 1 samplingMethod int
Alpha: 1 alpha float, 2 beta float
AlphaSecond: 2 alpha float
AlphaWeights: 1 alpha Weights, 2 beta Weights
Activation: 5 linear Alpha, 10 ReLU Empty, 15 leakyReLU Alpha, 20 thresholdedReLU Alpha,
  25 PReLU AlphaWeights, 30 tanh Empty, 31 scaledTanh Alpha, 40 sigmoid Empty,
  41 sigmoidHard Alpha, 50 ELU Alpha, 60 softsign Empty, 70 softplus Empty,
  71 parametricSoftplus AlphaWeights
Convolution: 1 outputChannels int, 2 kernelChannels int, 10 nGroups int, 20 kernelSize int*,
  30 stride int*, 40 dilationFactor int*, 50 valid ValidPadding, 51 same SamePadding,
  60 isDeconvolution bool, 70 hasBias bool, 90 weights Weights, 91 bias Weights,
  100 outputShape int*
Pooling: 1 type int, 10 kernelSize int*, 20 stride int*, 30 valid ValidPadding,
  31 same SamePadding, 32 includeLastPixel CompletePadding, 50 avgPoolExcludePadding bool,
  60 globalPooling bool
InnerProduct: 1 inputChannels int, 2 outputChannels int, 10 hasBias bool, 20 weights Weights,
  21 bias Weights, 22 int8DynamicQuantize bool
Embedding: 1 inputDim int, 2 outputChannels int, 10 hasBias bool, 20 weights Weights,
  21 bias Weights
BatchNorm: 1 channels int, 5 computeMeanVar bool, 6 instanceNormalization bool, 10 epsilon float,
  15 gamma Weights, 16 beta Weights, 17 mean Weights, 18 variance Weights
Mvn: 1 acrossChannels bool, 2 normalizeVariance bool, 3 epsilon float
Epsilon: 1 epsilon float
Lrn: 1 alpha float, 2 beta float, 3 localSize int, 4 k float
Crop: 1 cropAmounts Borders, 5 offset int*
Padding: 1 constant PadValue, 2 reflection Empty, 3 replication Empty, 10 paddingAmounts Borders
PadValue: 1 value float
Upsample: 1 scalingFactor int*, 5 mode int, 6 linearUpsampleMode int,
  7 fractionalScalingFactor float*
ResizeBilinear: 1 targetSize int*, 2 mode SamplingMode
Unary: 1 type int, 2 alpha float, 3 epsilon float, 4 shift float, 5 scale float
Bias: 1 shape int*, 2 bias Weights
Scale: 1 shapeScale int*, 2 scale Weights, 3 hasBias bool, 4 shapeBias int*, 5 bias Weights
LoadConstant: 1 shape int*, 2 data Weights
Reduce: 1 mode int, 2 epsilon float, 3 axis int
Reshape: 1 targetShape int*, 2 mode int
Flatten: 1 mode int
Axes: 1 axes int*, 2 keepDims bool, 3 reduceAll bool
Permute: 1 axis int*
Concat: 100 sequenceConcat bool
ConcatND: 1 axis int, 2 interleave bool
Axis: 1 axis int, 2 removeDim bool
Split: 1 nOutputs int
SplitND: 1 axis int, 2 numSplits int, 3 splitSizes int*
Reorganize: 1 mode int, 2 blockSize int
Slice: 1 startIndex int, 2 endIndex int, 3 stride int, 4 axis int
SliceStatic: 1 beginIds int*, 2 beginMasks bool*, 3 endIds int*, 4 endMasks bool*, 5 strides int*,
  6 squeezeMasks bool*
Clip: 1 minVal float, 2 maxVal float
Gelu: 1 mode int
Tile: 1 reps int*
Reverse: 1 reverseDim bool*
MatMul: 1 transposeA bool, 2 transposeB bool, 5 weightMatrixFirstDimension int,
  6 weightMatrixSecondDimension int, 7 hasBias bool, 8 weights Weights, 9 bias Weights,
  10 int8DynamicQuantize bool
Squeeze: 1 axes int*, 2 squeezeAll bool
ConstantPad: 1 value float, 2 padAmounts int*, 3 padToGivenOutputSizeMode bool
LayerNorm: 1 normalizedShape int*, 2 eps float, 3 gamma Weights, 4 beta Weights
LSTM: 1 inputVectorSize int, 2 outputVectorSize int, 10 activations Activation*,
  15 params LSTMParams, 20 weightParams LSTMWeights, 100 reverseInput bool
BiLSTM: 1 inputVectorSize int, 2 outputVectorSize int, 10 activationsForwardLSTM Activation*,
  11 activationsBackwardLSTM Activation*, 15 params LSTMParams, 20 weightParams LSTMWeights*
LSTMParams: 10 sequenceOutput bool, 20 hasBiasVectors bool, 30 forgetBias bool,
  40 hasPeepholeVectors bool, 50 coupledInputAndForgetGate bool, 60 cellClipThreshold float
LSTMWeights: 1 inputGateWeightMatrix Weights, 2 forgetGateWeightMatrix Weights,
  3 blockInputWeightMatrix Weights, 4 outputGateWeightMatrix Weights,
  20 inputGateRecursionMatrix Weights, 21 forgetGateRecursionMatrix Weights,
  22 blockInputRecursionMatrix Weights, 23 outputGateRecursionMatrix Weights,
  40 inputGateBiasVector Weights, 41 forgetGateBiasVector Weights,
  42 blockInputBiasVector Weights, 43 outputGateBiasVector Weights
EmbeddingND: 1 inputDim int, 2 outputChannels int, 3 hasBias bool, 20 weights Weights,
  21 bias Weights
Fill: 1 value float, 2 targetShape int*
TargetShape: 1 targetShape int*
Layer: 1 name text, 2 input text*, 3 output text*, 100 convolution Convolution,
  120 pooling Pooling, 130 activation Activation, 140 innerProduct InnerProduct,
  150 embedding Embedding, 160 batchnorm BatchNorm, 165 mvn Mvn, 170 l2normalize Epsilon,
  175 softmax Empty, 180 lrn Lrn, 190 crop Crop, 200 padding Padding, 210 upsample Upsample,
  211 resizeBilinear ResizeBilinear, 212 cropResize Empty, 220 unary Unary, 230 add Alpha,
  231 multiply Alpha, 240 average Empty, 245 scale Scale, 250 bias Bias, 260 max Empty,
  261 min Empty, 270 dot Empty, 280 reduce Reduce, 290 loadConstant LoadConstant,
  300 reshape Reshape, 301 flatten Flatten, 310 permute Permute, 320 concat Concat,
  330 split Split, 340 sequenceRepeat Empty, 345 reorganizeData Reorganize, 350 slice Slice,
  400 simpleRecurrent Empty, 410 gru Empty, 420 uniDirectionalLSTM LSTM,
  430 biDirectionalLSTM BiLSTM, 500 custom Empty, 600 copy Empty, 605 branch Empty,
  615 loop Empty, 620 loopBreak Empty, 625 loopContinue Empty, 635 rangeStatic Empty,
  640 rangeDynamic Empty, 660 clip Clip, 665 ceil Empty, 670 floor Empty, 680 sign Empty,
  685 round Empty, 700 exp2 Empty, 710 sin Empty, 715 cos Empty, 720 tan Empty, 730 asin Empty,
  735 acos Empty, 740 atan Empty, 750 sinh Empty, 755 cosh Empty, 760 tanh Empty, 770 asinh Empty,
  775 acosh Empty, 780 atanh Empty, 790 erf Empty, 795 gelu Gelu, 815 equal Alpha,
  820 notEqual Alpha, 825 lessThan AlphaSecond, 827 lessEqual AlphaSecond,
  830 greaterThan AlphaSecond, 832 greaterEqual AlphaSecond, 840 logicalOr Empty,
  845 logicalXor Empty, 850 logicalNot Empty, 855 logicalAnd Empty, 865 modBroadcastable Empty,
  870 minBroadcastable Empty, 875 maxBroadcastable Empty, 880 addBroadcastable Empty,
  885 powBroadcastable Empty, 890 divideBroadcastable Empty, 895 floorDivBroadcastable Empty,
  900 multiplyBroadcastable Empty, 905 subtractBroadcastable Empty, 920 tile Tile, 925 stack Axis,
  930 gather Axis, 935 scatter Empty, 940 gatherND Empty, 945 scatterND Empty, 950 softmaxND Axis,
  952 gatherAlongAxis Axis, 954 scatterAlongAxis Empty, 960 reverse Reverse, 965 reverseSeq Empty,
  975 splitND SplitND, 980 concatND ConcatND, 985 transpose Axes, 995 sliceStatic SliceStatic,
  1000 sliceDynamic Empty, 1005 slidingWindows Empty, 1015 topK Empty, 1020 argMin Axis,
  1025 argMax Axis, 1040 embeddingND EmbeddingND, 1045 batchedMatmul MatMul, 1065 getShape Empty,
  1070 loadConstantND LoadConstant, 1080 fillLike Fill, 1085 fillStatic Fill,
  1090 fillDynamic Empty, 1100 broadcastToLike Empty, 1105 broadcastToStatic TargetShape,
  1110 broadcastToDynamic Empty, 1120 squeeze Squeeze, 1125 expandDims Axes,
  1130 flattenTo2D Axis, 1135 reshapeLike Empty, 1140 reshapeStatic Reshape,
  1145 reshapeDynamic Empty, 1150 rankPreservingReshape Reshape, 1155 constantPad ConstantPad,
  1170 randomNormalLike Empty, 1175 randomNormalStatic Empty, 1180 randomNormalDynamic Empty,
  1190 randomUniformLike Empty, 1195 randomUniformStatic Empty, 1200 randomUniformDynamic Empty,
  1210 randomBernoulliLike Empty, 1215 randomBernoulliStatic Empty,
  1220 randomBernoulliDynamic Empty, 1230 categoricalDistribution Empty, 1250 reduceL1 Axes,
  1255 reduceL2 Axes, 1260 reduceMax Axes, 1265 reduceMin Axes, 1270 reduceSum Axes,
  1275 reduceProd Axes, 1280 reduceMean Axes, 1285 reduceLogSum Axes, 1290 reduceSumSquare Axes,
  1295 reduceLogSumExp Axes, 1313 whereNonZero Empty, 1315 matrixBandPart Empty,
  1320 lowerTriangular Empty, 1325 upperTriangular Empty, 1330 whereBroadcastable Empty,
  1350 layerNormalization LayerNorm, 1400 NonMaximumSuppression Empty, 1450 oneHot Empty,
  1455 cumSum Empty, 1460 clampedReLU Alpha, 1461 argSort Empty, 1465 pooling3d Empty,
  1466 globalPooling3d Empty, 1470 sliceBySize Empty, 1471 convolution3d Empty
""")
"""Name of a message -> its fields."""
