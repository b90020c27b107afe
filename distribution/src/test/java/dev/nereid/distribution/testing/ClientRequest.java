package dev.nereid.distribution.testing;

import com.google.protobuf.ByteString;
import dev.nereid.spi.Sequence;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelInferRequest.InferRequestedOutputTensor;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * An inference request, independent of the protocol. Immutable.
 *
 * @param model the name of the model
 * @param version the version; empty for the latest
 * @param id the client's name for the request; empty for none
 * @param inputs the inputs
 * @param outputs the requested outputs; empty for all
 * @param sequence the place in a sequence; empty for none
 */
public record ClientRequest(
        String model,
        String version,
        String id,
        List<Input> inputs,
        List<String> outputs,
        Optional<Sequence> sequence) {
    /**
     * An input. Immutable, except the array, which is never changed.
     *
     * @param name the name
     * @param datatype the type
     * @param shape the dimensions
     * @param data the bytes
     */
    public @SuppressWarnings("ArrayRecordComponent") // Never compared.
    record Input(String name, String datatype, List<Long> shape, byte[] data) {}

    /** Begins a request. */
    public static ClientRequest of(String model) {
        return new ClientRequest(model, "", "", List.of(), List.of(), Optional.empty());
    }

    public ClientRequest input(String name, String datatype, byte[] data, long... shape) {
        List<Input> more = new ArrayList<>(inputs);
        more.add(new Input(name, datatype, Arrays.stream(shape).boxed().toList(), data));
        return new ClientRequest(model, version, id, List.copyOf(more), outputs, sequence);
    }

    public ClientRequest output(String name) {
        return new ClientRequest(
                model,
                version,
                id,
                inputs,
                Stream.concat(outputs.stream(), Stream.of(name)).toList(),
                sequence);
    }

    public ClientRequest withId(String changed) {
        return new ClientRequest(model, version, changed, inputs, outputs, sequence);
    }

    public ClientRequest withVersion(String changed) {
        return new ClientRequest(model, changed, id, inputs, outputs, sequence);
    }

    /** Puts the request into a sequence with a number. */
    public ClientRequest inSequence(long number, boolean start, boolean end) {
        Sequence position = new Sequence(new Sequence.Id.Numeric(number), start, end);
        return new ClientRequest(model, version, id, inputs, outputs, Optional.of(position));
    }

    /** Writes the request for HTTP, tensors as bytes both ways. */
    public byte[] overHttp() {
        byte[] json = json().getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(json);
        inputs.forEach(input -> body.writeBytes(input.data()));
        String path = "/v2/models/" + model + (version.isEmpty() ? "" : "/versions/" + version) + "/infer";
        return HttpRequests.post(path, body.toByteArray(), "Inference-Header-Content-Length: " + json.length);
    }

    private String json() {
        String tensors = inputs.stream()
                .map(input -> "{\"name\":\"" + input.name() + "\",\"datatype\":\"" + input.datatype() + "\",\"shape\":"
                        + input.shape() + ",\"parameters\":{\"binary_data_size\":" + input.data().length + "}}")
                .collect(Collectors.joining(",", "\"inputs\":[", "]"));
        String selected = outputs.stream()
                .map(output -> "{\"name\":\"" + output + "\",\"parameters\":{\"binary_data\":true}}")
                .collect(Collectors.joining(",", ",\"outputs\":[", "]"));
        return "{" + (id.isEmpty() ? "" : "\"id\":\"" + id + "\",")
                + tensors + (outputs.isEmpty() ? "" : selected)
                + ",\"parameters\":{\"binary_data_output\":true"
                + sequence.map(ClientRequest::json).orElse("") + "}}";
    }

    private static String json(Sequence position) {
        return ",\"sequence_id\":" + number(position) + ",\"sequence_start\":" + position.start() + ",\"sequence_end\":"
                + position.end();
    }

    private static long number(Sequence position) {
        return ((Sequence.Id.Numeric) position.id()).value();
    }

    /** Writes the request for gRPC, tensors as raw bytes. */
    public ModelInferRequest overGrpc() {
        ModelInferRequest.Builder request = withoutContents();
        inputs.forEach(input -> request.addRawInputContents(ByteString.copyFrom(input.data())));
        return request.build();
    }

    /** Writes the request for gRPC, without the tensors' bytes. */
    public ModelInferRequest.Builder withoutContents() {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                .setModelName(model)
                .setModelVersion(version)
                .setId(id);
        for (Input input : inputs) {
            request.addInputs(InferInputTensor.newBuilder()
                    .setName(input.name())
                    .setDatatype(input.datatype())
                    .addAllShape(input.shape()));
        }
        outputs.forEach(output ->
                request.addOutputs(InferRequestedOutputTensor.newBuilder().setName(output)));
        sequence.ifPresent(position -> request.putParameters(
                        "sequence_id",
                        InferParameter.newBuilder()
                                .setInt64Param(number(position))
                                .build())
                .putParameters("sequence_start", flag(position.start()))
                .putParameters("sequence_end", flag(position.end())));
        return request;
    }

    private static InferParameter flag(boolean value) {
        return InferParameter.newBuilder().setBoolParam(value).build();
    }
}
