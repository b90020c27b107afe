package dev.nereid.distribution.errors;

import static dev.nereid.distribution.errors.InvalidRequest.both;
import static dev.nereid.distribution.errors.InvalidRequest.grpc;
import static dev.nereid.distribution.errors.InvalidRequest.http;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.spi.ErrorCode.INTERNAL;
import static dev.nereid.spi.ErrorCode.INVALID_ARGUMENT;
import static dev.nereid.spi.ErrorCode.UNSUPPORTED;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.spi.ErrorCode;
import inference.InferParameter;
import inference.ModelInferRequest;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;

/** Requests that break the rules of their protocol, regardless of the model. */
final class MalformedRequests {
    private static final String GOOD_INPUT =
            "{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}";
    private static final byte[] FOUR = floats(1, 2, 3, 4);
    private static final String NO_ID = "[request id: <id_unknown>] ";
    private static final String ONE_FIELD = "Input must set only one of the following fields: 'data',"
            + " 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But ";
    private static final String MISSING = "attempt to access non-existing object member ";
    private static final String RESERVED = "parameter keys starting with 'triton_' are reserved for Triton usage";

    private MalformedRequests() {}

    static Stream<InvalidRequest> all() {
        return Stream.of(transport(), structure(), shapes(), names(), parameters(), binary())
                .flatMap(rows -> rows);
    }

    private static Stream<InvalidRequest> transport() {
        ClientRequest stream = ClientRequest.of(InvalidRequests.STREAM).input("INPUT0", "FP32", FOUR, 4);
        byte[] body = "{}".getBytes(StandardCharsets.UTF_8);
        return Stream.of(
                http(
                                "decoupled model",
                                stream.overHttp(),
                                UNSUPPORTED,
                                "HTTP end point doesn't support models with decoupled transaction policy")
                        .andGrpc(
                                stream.overGrpc(),
                                UNSUPPORTED,
                                "ModelInfer RPC doesn't support models with decoupled transaction policy"),
                http(
                        "unknown content encoding",
                        HttpRequests.json(
                                InvalidRequests.VECTOR, "{\"inputs\":[" + GOOD_INPUT + "]}", "Content-Encoding: br"),
                        UNSUPPORTED,
                        "Unsupported compression type"),
                headerLength("abc", "Unable to parse Inference-Header-Content-Length, got: abc", body),
                headerLength("-1", "inference header size should be in range (0, 2), got: -1", body),
                headerLength("3", "inference header size should be in range (0, 2), got: 3", body),
                headerLength(
                        "3000000000",
                        "Unable to parse Inference-Header-Content-Length, value is out of range [ -2147483648,"
                                + " 2147483647 ], got: 3000000000",
                        body));
    }

    private static InvalidRequest headerLength(String value, String error, byte[] body) {
        return http(
                "Inference-Header-Content-Length: " + value,
                HttpRequests.post(
                        "/v2/models/" + InvalidRequests.VECTOR + "/infer",
                        body,
                        "Inference-Header-Content-Length: " + value),
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<InvalidRequest> structure() {
        String region = "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":16";
        return Stream.of(
                json("no JSON", "hello", INTERNAL, "failed to parse the request JSON buffer: Invalid value. at 0"),
                json("inputs missing", "{}", INTERNAL, "Unable to parse 'inputs': " + MISSING + "'inputs'")
                        .andGrpc(
                                ClientRequest.of(InvalidRequests.VECTOR).overGrpc(),
                                INVALID_ARGUMENT,
                                NO_ID + "expected 1 inputs but got 0 inputs for model 'vector'. Got input(s) [], but"
                                        + " missing required input(s) ['INPUT0']. Please provide all required"
                                        + " input(s)."),
                json(
                        "inputs of another type",
                        "{\"inputs\":{}}",
                        INTERNAL,
                        "Unable to parse 'inputs': attempt to access JSON non-array as array"),
                input(
                                "no data",
                                "\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\"",
                                INVALID_ARGUMENT,
                                ONE_FIELD + "no field is set")
                        .andGrpc(
                                InvalidRequests.good().withoutContents().build(),
                                INVALID_ARGUMENT,
                                "unable to find data for input tensor 'INPUT0' for model 'vector' in request."),
                input(
                        "data twice",
                        "\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4],"
                                + "\"parameters\":{\"binary_data_size\":16}",
                        INVALID_ARGUMENT,
                        ONE_FIELD + "set 'data' 'binary_data_size'"),
                input(
                        "data three times",
                        "\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4],"
                                + "\"parameters\":{\"binary_data_size\":16," + region + "}",
                        INVALID_ARGUMENT,
                        ONE_FIELD + "set 'data' 'binary_data_size' 'shared_memory_region'"),
                input(
                        "name missing",
                        "\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                        INTERNAL,
                        "Unable to parse 'name': " + MISSING + "'name'"),
                input(
                        "name of another type",
                        "\"name\":1,\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                        INTERNAL,
                        "Unable to parse 'name': attempt to access JSON non-string as string"),
                input(
                        "datatype missing",
                        "\"name\":\"INPUT0\",\"shape\":[1,4],\"data\":[1,2,3,4]",
                        INTERNAL,
                        "Unable to parse 'datatype': " + MISSING + "'datatype'"),
                input(
                        "shape missing",
                        "\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                        INTERNAL,
                        "Unable to parse 'shape': " + MISSING + "'shape'"),
                input(
                        "negative dimension",
                        "\"name\":\"INPUT0\",\"shape\":[1,-4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                        INTERNAL,
                        "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"));
    }

    private static Stream<InvalidRequest> shapes() {
        String prefix = "invalid shape for input 'INPUT0': shape ";
        return Stream.of(
                shape(
                        "dimension that wraps",
                        "1,9223372036854775808",
                        prefix + "[1,-9223372036854775808] contains one or more invalid dimensions"),
                shape(
                        "too many elements",
                        "4294967296,4294967296",
                        prefix
                                + "[4294967296,4294967296] causes total element count to exceed maximum size of "
                                + Long.MAX_VALUE),
                shape(
                                "too many bytes",
                                "1,4611686018427387904",
                                "byte size overflow for input 'INPUT0': element count (4611686018427387904) * data"
                                        + " type size (4) exceeds maximum allowed size (9223372036854775807)")
                        .andGrpc(
                                ClientRequest.of(InvalidRequests.VECTOR)
                                        .input("INPUT0", "FP32", FOUR, 1, 1L << 62)
                                        .overGrpc(),
                                INVALID_ARGUMENT,
                                "byte size for tensor 'INPUT0' exceeds maximum size of 9223372036854775807"),
                shape(
                        "larger than the limit",
                        "1,2147483648",
                        "JSON input 'INPUT0' has a byte_size (8589934592 bytes)"
                                + " that exceeds the maximum allowed value of " + TestServer.MAX_JSON_BYTES
                                + " bytes. Use --http-max-input-size to increase the limit."));
    }

    private static InvalidRequest shape(String title, String dims, String error) {
        return input(
                "shape: " + title,
                "\"name\":\"INPUT0\",\"shape\":[" + dims + "],\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<InvalidRequest> names() {
        ClientRequest twice = InvalidRequests.good().input("INPUT0", "FP32", FOUR, 1, 4);
        ClientRequest repeated = InvalidRequests.good().output("OUTPUT0").output("OUTPUT0");
        return Stream.of(
                output(
                                "output in shared memory and classified",
                                "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":16,\"classification\":1",
                                "Output can't set both 'shared_memory_region' and 'classification'")
                        .andGrpc(
                                withOutputParameters(),
                                INVALID_ARGUMENT,
                                "output can't set both 'shared_memory_region' and 'classification'"),
                output(
                        "output in shared memory and binary",
                        "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":16,\"binary_data\":true",
                        "Output can't set both 'shared_memory_region' and 'binary_data'"),
                both("duplicate input", twice, INVALID_ARGUMENT, NO_ID + "input 'INPUT0' already exists in request"),
                both(
                        "duplicate input, with id",
                        twice.withId("seven"),
                        INVALID_ARGUMENT,
                        "[request id: seven] input 'INPUT0' already exists in request"),
                both(
                        "duplicate output",
                        repeated,
                        INVALID_ARGUMENT,
                        NO_ID + "output 'OUTPUT0' already exists in request"));
    }

    private static ModelInferRequest withOutputParameters() {
        ModelInferRequest.Builder request = InvalidRequests.good().output("OUTPUT0").overGrpc().toBuilder();
        request.getOutputsBuilder(0)
                .putParameters(
                        "shared_memory_region",
                        InferParameter.newBuilder().setStringParam("r").build())
                .putParameters(
                        "shared_memory_byte_size",
                        InferParameter.newBuilder().setInt64Param(16).build())
                .putParameters(
                        "classification",
                        InferParameter.newBuilder().setInt64Param(1).build());
        return request.build();
    }

    private static Stream<InvalidRequest> parameters() {
        String type = "parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'.";
        return Stream.of(
                parameter("reserved", "\"triton_foo\":1", RESERVED + " and should not be specified.")
                        .andGrpc(
                                with("triton_foo", InferParameter.newBuilder().setInt64Param(1)),
                                INVALID_ARGUMENT,
                                RESERVED + ". Only the following keys starting with 'triton_' are allowed:"
                                        + " triton_enable_empty_final_response"),
                parameter("null", "\"p\":null", type)
                        .andGrpc(
                                with("p", InferParameter.newBuilder()),
                                INVALID_ARGUMENT,
                                "invalid value type for 'p' parameter, expected int64_param, bool_param, or"
                                        + " string_param."),
                parameter("array", "\"p\":[1]", type),
                parameter("object", "\"p\":{}", type),
                grpc(
                        "parameter: unsigned",
                        with("p", InferParameter.newBuilder().setUint64Param(1)),
                        INVALID_ARGUMENT,
                        "invalid value type for 'p' parameter, expected int64_param, bool_param, or string_param."));
    }

    private static ModelInferRequest with(String parameter, InferParameter.Builder value) {
        return InvalidRequests.good().overGrpc().toBuilder()
                .putParameters(parameter, value.build())
                .build();
    }

    private static InvalidRequest parameter(String title, String member, String error) {
        return json(
                "parameter: " + title,
                "{\"inputs\":[" + GOOD_INPUT + "],\"parameters\":{" + member + "}}",
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<InvalidRequest> binary() {
        byte[] good = InvalidRequests.good().overHttp();
        byte[] cut = cutBody(good, -4);
        byte[] grown = cutBody(good, 3);
        return Stream.of(
                http(
                        "binary data cut short",
                        cut,
                        INVALID_ARGUMENT,
                        "unexpected size for input 'INPUT0', expecting 4 additional bytes for model 'vector'"),
                http(
                        "more binary data than inputs",
                        grown,
                        INVALID_ARGUMENT,
                        "unexpected additional input data for model 'vector'"));
    }

    /** Rewrites a request as if its body were some bytes longer or shorter. */
    private static byte[] cutBody(byte[] request, int change) {
        String text = new String(request, StandardCharsets.ISO_8859_1);
        int start = text.indexOf("\r\n\r\n") + 4;
        String body = text.substring(start);
        String changed = change < 0 ? body.substring(0, body.length() + change) : body + "z".repeat(change);
        String before = text.substring(0, start)
                .replace(
                        "Content-Length: " + body.length() + "\r\nInf",
                        "Content-Length: " + changed.length() + "\r\nInf");
        return (before + changed).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static InvalidRequest output(String title, String parameters, String error) {
        return json(
                title,
                "{\"inputs\":[" + GOOD_INPUT + "],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{" + parameters
                        + "}}]}",
                INVALID_ARGUMENT,
                error);
    }

    private static InvalidRequest input(String title, String members, ErrorCode code, String error) {
        return json(title, "{\"inputs\":[{" + members + "}]}", code, error);
    }

    private static InvalidRequest json(String title, String body, ErrorCode code, String error) {
        return http(title, HttpRequests.json(InvalidRequests.VECTOR, body), code, error);
    }
}
