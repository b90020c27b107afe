package dev.nereid.distribution.demo;

import com.google.protobuf.ByteString;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelInferRequest.InferRequestedOutputTensor;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.Collectors;

/** An inference request of the demo, with one input. Immutable as long as the data is not written. */
public record DemoRequest(
        String model, String input, String datatype, List<Long> shape, ByteBuffer data, List<Output> outputs) {
    private static final String CLASSIFICATION = "classification";

    /** A requested output: all elements, or only a number of best classes if that is not 0. Immutable. */
    public record Output(String name, int classes) {}

    public DemoRequest {
        shape = List.copyOf(shape);
        outputs = List.copyOf(outputs);
    }

    /** Returns a new view of the data. */
    @Override
    public ByteBuffer data() {
        return data.asReadOnlyBuffer();
    }

    /** Returns the JSON part of a request over HTTP; the data follows it. */
    String json() {
        String requested = outputs.stream()
                .map(output -> "{\"name\":\"" + output.name() + "\",\"parameters\":{\"binary_data\":true"
                        + (output.classes() > 0 ? ",\"" + CLASSIFICATION + "\":" + output.classes() : "") + "}}")
                .collect(Collectors.joining(",", "[", "]"));
        return "{\"inputs\":[{\"name\":\"" + input + "\",\"datatype\":\"" + datatype + "\",\"shape\":" + shape
                + ",\"parameters\":{\"binary_data_size\":" + data.remaining() + "}}],\"outputs\":" + requested + "}";
    }

    /** Returns the message of a request over gRPC. */
    ModelInferRequest message() {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                .setModelName(model)
                .addInputs(InferInputTensor.newBuilder()
                        .setName(input)
                        .setDatatype(datatype)
                        .addAllShape(shape))
                .addRawInputContents(ByteString.copyFrom(data()));
        for (Output output : outputs) {
            InferRequestedOutputTensor.Builder requested =
                    InferRequestedOutputTensor.newBuilder().setName(output.name());
            if (output.classes() > 0) {
                requested.putParameters(
                        CLASSIFICATION,
                        InferParameter.newBuilder()
                                .setInt64Param(output.classes())
                                .build());
            }
            request.addOutputs(requested);
        }
        return request.build();
    }
}
