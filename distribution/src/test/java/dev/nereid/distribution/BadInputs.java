package dev.nereid.distribution;

import static dev.nereid.distribution.BadInput.both;
import static dev.nereid.distribution.BadInput.grpc;
import static dev.nereid.distribution.BadInput.http;
import static dev.nereid.distribution.TensorBytes.floats;
import static dev.nereid.distribution.TensorBytes.ints;
import static dev.nereid.distribution.TensorBytes.strings;
import static dev.nereid.spi.ErrorCode.INTERNAL;
import static dev.nereid.spi.ErrorCode.INVALID_ARGUMENT;
import static dev.nereid.spi.ErrorCode.NOT_FOUND;
import static dev.nereid.spi.ErrorCode.UNAVAILABLE;
import static dev.nereid.spi.ErrorCode.UNSUPPORTED;

import com.google.protobuf.ByteString;
import inference.InferParameter;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;

/**
 * Every way to be wrong that the protocol's description lists for an inference, in its order, with the text that is to
 * be answered.
 *
 * <p>Two rows are not here: the type of a sequence's id, which is checked against models that are scheduled by
 * sequence, and the state of the server, which no single request makes.
 */
final class BadInputs {
    static final String VECTOR = "vector";
    static final String PAIR = "pair";
    static final String CHOICE = "choice";
    static final String WORDS = "words";
    static final String FLAT = "flat";
    static final String STREAM = "stream";
    static final String BROKEN = "broken";

    private static final String GOOD_INPUT =
            "{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}";
    private static final byte[] FOUR = floats(1, 2, 3, 4);
    private static final byte[] SIXTEEN = ints(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    private static final String NO_ID = "[request id: <id_unknown>] ";
    private static final String ONE_FIELD = "Input must set only one of the following fields: 'data',"
            + " 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But ";
    private static final String MISSING = "attempt to access non-existing object member ";
    private static final String BATCH_NOTE = " NOTE: Setting a non-zero max_batch_size in the model config requires a"
            + " batch dimension to be prepended to each input shape. If you want to specify the full shape including"
            + " the batch dim in your input dims config, try setting max_batch_size to zero. See the model"
            + " configuration docs for more info on max_batch_size.";
    private static final String RESERVED = "parameter keys starting with 'triton_' are reserved for Triton usage";

    private BadInputs() {}

    /** Puts the models together that the requests go to. */
    static Repository models(Repository repository) {
        String pair = "backend: \"identity\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 16 ] },"
                + " { name: \"INPUT1\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 16 ] },"
                + " { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n";
        String choice = "backend: \"identity\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1, 2 ] },"
                + " { name: \"INPUT1\" data_type: TYPE_STRING dims: [ 1 ] optional: true } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1, 2 ] },"
                + " { name: \"OUTPUT1\" data_type: TYPE_STRING dims: [ 1 ] } ]\n";
        String never = "parameters [ { key: \"execute_delay_ms\" value: { string_value: \"never\" } } ]\n";
        return repository
                .model(VECTOR, Repository.identity(64, "FP32", "[ -1 ]", "dynamic_batching { }\n"))
                .model(PAIR, pair)
                .model(CHOICE, choice)
                .model(WORDS, Repository.identity(8, "STRING", "[ -1 ]", ""))
                .model(FLAT, Repository.identity(0, "FP32", "[ -1 ]", ""))
                .model(
                        STREAM,
                        Repository.identity(0, "FP32", "[ 4 ]", "model_transaction_policy { decoupled: true }\n"))
                .model(BROKEN, Repository.identity(0, "FP32", "[ 4 ]", never));
    }

    /** Returns a request that is right. */
    static Ask good() {
        return Ask.of(VECTOR).input("INPUT0", "FP32", FOUR, 1, 4);
    }

    static List<BadInput> all() {
        return Stream.of(
                        transport(),
                        structure(),
                        shapes(),
                        names(),
                        parameters(),
                        binary(),
                        models(),
                        inputs(),
                        batches(),
                        contents(),
                        grpcContents())
                .flatMap(rows -> rows)
                .toList();
    }

    private static Stream<BadInput> transport() {
        Ask stream = Ask.of(STREAM).input("INPUT0", "FP32", FOUR, 4);
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
                        HttpRequests.json(VECTOR, "{\"inputs\":[" + GOOD_INPUT + "]}", "Content-Encoding: br"),
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

    private static BadInput headerLength(String value, String error, byte[] body) {
        return http(
                "Inference-Header-Content-Length: " + value,
                HttpRequests.post(
                        "/v2/models/" + VECTOR + "/infer", body, "Inference-Header-Content-Length: " + value),
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<BadInput> structure() {
        String region = "\"shared_memory_region\":\"r\",\"shared_memory_byte_size\":16";
        return Stream.of(
                json("no JSON", "hello", INTERNAL, "failed to parse the request JSON buffer: Invalid value. at 0"),
                json(
                                "inputs missing",
                                "{}",
                                INTERNAL,
                                "Unable to parse 'inputs': " + MISSING + "'inputs'")
                        .andGrpc(
                                Ask.of(VECTOR).overGrpc(),
                                INVALID_ARGUMENT,
                                NO_ID + "expected 1 inputs but got 0 inputs for model 'vector'. Got input(s) [], but"
                                        + " missing required input(s) ['INPUT0']. Please provide all required"
                                        + " input(s)."),
                json(
                        "inputs of another type",
                        "{\"inputs\":{}}",
                        INTERNAL,
                        "Unable to parse 'inputs': attempt to access JSON non-array as array"),
                input("no data", "\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\"", INVALID_ARGUMENT,
                                ONE_FIELD + "no field is set")
                        .andGrpc(
                                good().withoutContents().build(),
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

    private static Stream<BadInput> shapes() {
        String prefix = "invalid shape for input 'INPUT0': shape ";
        return Stream.of(
                shape("dimension that wraps", "1,9223372036854775808", prefix
                        + "[1,-9223372036854775808] contains one or more invalid dimensions"),
                shape("too many elements", "4294967296,4294967296", prefix
                        + "[4294967296,4294967296] causes total element count to exceed maximum size of "
                        + Long.MAX_VALUE),
                shape(
                                "too many bytes",
                                "1,4611686018427387904",
                                "byte size overflow for input 'INPUT0': element count (4611686018427387904) * data"
                                        + " type size (4) exceeds maximum allowed size (9223372036854775807)")
                        .andGrpc(
                                Ask.of(VECTOR)
                                        .input("INPUT0", "FP32", FOUR, 1, 1L << 62)
                                        .overGrpc(),
                                INVALID_ARGUMENT,
                                "byte size for tensor 'INPUT0' exceeds maximum size of 9223372036854775807"),
                shape("larger than the limit", "1,2147483648", "JSON input 'INPUT0' has a byte_size (8589934592 bytes)"
                        + " that exceeds the maximum allowed value of " + TestServer.MAX_JSON_BYTES
                        + " bytes. Use --http-max-input-size to increase the limit."));
    }

    private static BadInput shape(String title, String dims, String error) {
        return input(
                "shape: " + title,
                "\"name\":\"INPUT0\",\"shape\":[" + dims + "],\"datatype\":\"FP32\",\"data\":[1,2,3,4]",
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<BadInput> names() {
        Ask twice = good().input("INPUT0", "FP32", FOUR, 1, 4);
        Ask wanted = good().output("OUTPUT0").output("OUTPUT0");
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
                        wanted,
                        INVALID_ARGUMENT,
                        NO_ID + "output 'OUTPUT0' already exists in request"));
    }

    private static ModelInferRequest withOutputParameters() {
        ModelInferRequest.Builder request = good().output("OUTPUT0").overGrpc().toBuilder();
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

    private static Stream<BadInput> parameters() {
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
        return good().overGrpc().toBuilder()
                .putParameters(parameter, value.build())
                .build();
    }

    private static BadInput parameter(String title, String member, String error) {
        return json(
                "parameter: " + title,
                "{\"inputs\":[" + GOOD_INPUT + "],\"parameters\":{" + member + "}}",
                INVALID_ARGUMENT,
                error);
    }

    private static Stream<BadInput> binary() {
        byte[] good = good().overHttp();
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
        String head = text.substring(0, start)
                .replace("Content-Length: " + body.length() + "\r\nInf", "Content-Length: " + changed.length()
                        + "\r\nInf");
        return (head + changed).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static Stream<BadInput> models() {
        return Stream.of(
                both(
                        "unknown model",
                        Ask.of("nobody").input("INPUT0", "FP32", FOUR, 1, 4),
                        NOT_FOUND,
                        "Request for unknown model: 'nobody' is not found"),
                both(
                        "unknown version",
                        good().withVersion("9"),
                        NOT_FOUND,
                        "Request for unknown model: 'vector' version 9 is not found"),
                both(
                        "no ready version",
                        Ask.of(BROKEN).input("INPUT0", "FP32", FOUR, 4),
                        NOT_FOUND,
                        "Request for unknown model: 'broken' has no available versions"),
                both(
                        "version not ready",
                        Ask.of(BROKEN).withVersion("1").input("INPUT0", "FP32", FOUR, 4),
                        UNAVAILABLE,
                        "Request for unknown model: 'broken' version 1 is not at ready state"));
    }

    private static Stream<BadInput> inputs() {
        Ask one = Ask.of(PAIR).input("INPUT0", "INT32", SIXTEEN, 1, 16);
        return Stream.of(
                both(
                        "input missing",
                        one,
                        INVALID_ARGUMENT,
                        NO_ID + "expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) ['INPUT0'], but"
                                + " missing required input(s) ['INPUT1']. Please provide all required input(s)."),
                both(
                        "required input missing beside an optional one",
                        Ask.of(CHOICE).input("INPUT1", "BYTES", strings("a"), 1, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "expected number of inputs between 1 and 2 but got 1 inputs for model 'choice'. Got"
                                + " input(s) ['INPUT1'], but missing required input(s) ['INPUT0']. Please provide"
                                + " all required input(s)."),
                both(
                        "unknown input",
                        Ask.of(VECTOR).input("FOO", "FP32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        "unexpected inference input 'FOO' for model 'vector'"),
                both(
                        "unknown output",
                        good().output("FOO"),
                        INVALID_ARGUMENT,
                        "unexpected inference output 'FOO' for model 'vector'"),
                both(
                        "other datatype",
                        Ask.of(VECTOR).input("INPUT0", "INT32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "inference input 'INPUT0' data-type is 'INT32', but model 'vector' expects 'FP32'"),
                both(
                        "shape of a model that batches",
                        Ask.of(PAIR)
                                .input("INPUT0", "INT32", ints(new int[15]), 1, 15)
                                .input("INPUT1", "INT32", SIXTEEN, 1, 16),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected shape for input 'INPUT0' for model 'pair'. Expected [-1,16], got [1,15]."
                                + BATCH_NOTE),
                both(
                        "shape of a model that does not batch",
                        Ask.of(FLAT).input("INPUT0", "FP32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected shape for input 'INPUT0' for model 'flat'. Expected [-1], got [1,4]. "),
                grpc(
                        "dimension left open",
                        Ask.of(VECTOR).input("INPUT0", "FP32", FOUR, 1, -1).overGrpc(),
                        INVALID_ARGUMENT,
                        NO_ID + "All input dimensions should be specified for input 'INPUT0' for model 'vector', got"
                                + " [1,-1]"));
    }

    private static Stream<BadInput> batches() {
        return Stream.of(
                both(
                        "scalar for a model that batches",
                        Ask.of(VECTOR).input("INPUT0", "FP32", floats(1)),
                        INVALID_ARGUMENT,
                        NO_ID + "input 'INPUT0' has no shape but model requires batch dimension for 'vector'"),
                both(
                        "batches that differ",
                        Ask.of(PAIR)
                                .input("INPUT0", "INT32", ints(new int[32]), 2, 16)
                                .input("INPUT1", "INT32", SIXTEEN, 1, 16),
                        INVALID_ARGUMENT,
                        NO_ID + "input 'INPUT0' batch size does not match other inputs for 'pair'"),
                both(
                        "batch too large",
                        Ask.of(VECTOR).input("INPUT0", "FP32", floats(new float[65]), 65, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "inference request batch-size must be <= 64 for 'vector'"),
                both(
                        "batch of none",
                        Ask.of(VECTOR).input("INPUT0", "FP32", new byte[0], 0, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 0"));
    }

    private static Stream<BadInput> contents() {
        byte[] cut = java.util.Arrays.copyOf(strings("ab", ""), 8);
        return Stream.of(
                both(
                        "too few bytes",
                        Ask.of(VECTOR).input("INPUT0", "FP32", floats(1, 2, 3), 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 12"),
                both(
                        "too many bytes",
                        Ask.of(VECTOR).input("INPUT0", "FP32", floats(1, 2, 3, 4, 5), 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 20"),
                both(
                        "string's length cut",
                        Ask.of(WORDS).input("INPUT0", "BYTES", cut, 1, 2),
                        INVALID_ARGUMENT,
                        NO_ID + "incomplete string length indicator for inference input 'INPUT0' for model 'words',"
                                + " expecting 4 bytes but only 2 bytes available. Please make sure the string length"
                                + " indicator is in one buffer."),
                both(
                        "too many strings",
                        Ask.of(WORDS).input("INPUT0", "BYTES", strings("a", "b"), 1, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected number of string elements 2 for inference input 'INPUT0' for model"
                                + " 'words', expecting 1"),
                both(
                        "too few strings",
                        Ask.of(WORDS).input("INPUT0", "BYTES", strings("a"), 1, 2),
                        INVALID_ARGUMENT,
                        NO_ID + "expected 2 string elements for inference input 'INPUT0' for model 'words', got 1"));
    }

    /** What only gRPC can say wrongly: where the bytes of an input are. */
    private static Stream<BadInput> grpcContents() {
        ModelInferRequest.Builder twice = good().overGrpc().toBuilder();
        twice.getInputsBuilder(0).setContents(InferTensorContents.newBuilder().addFp32Contents(1));
        ModelInferRequest.Builder other = good().withoutContents();
        other.getInputsBuilder(0).setContents(InferTensorContents.newBuilder().addIntContents(1));
        ModelInferRequest.Builder half = Ask.of(PAIR)
                .input("INPUT0", "INT32", SIXTEEN, 1, 16)
                .input("INPUT1", "INT32", SIXTEEN, 1, 16)
                .withoutContents()
                .addRawInputContents(ByteString.copyFrom(SIXTEEN));
        return Stream.of(
                grpc(
                        "contents and raw contents",
                        twice.build(),
                        INVALID_ARGUMENT,
                        "contents field must not be specified when using raw_input_contents for 'INPUT0' for model"
                                + " 'vector'"),
                grpc(
                        "contents of another type",
                        other.build(),
                        INVALID_ARGUMENT,
                        "unexpected explicit tensor data for input tensor 'INPUT0' for model 'vector' of type 'INT32',"
                                + " expected datatype 'FP32'"),
                grpc(
                        "fewer raw contents than inputs",
                        half.build(),
                        INVALID_ARGUMENT,
                        "unable to find data for input tensor 'INPUT1' for model 'pair' in request."));
    }

    private static BadInput output(String title, String parameters, String error) {
        return json(
                title,
                "{\"inputs\":[" + GOOD_INPUT + "],\"outputs\":[{\"name\":\"OUTPUT0\",\"parameters\":{" + parameters
                        + "}}]}",
                INVALID_ARGUMENT,
                error);
    }

    private static BadInput input(String title, String members, dev.nereid.spi.ErrorCode code, String error) {
        return json(title, "{\"inputs\":[{" + members + "}]}", code, error);
    }

    private static BadInput json(String title, String body, dev.nereid.spi.ErrorCode code, String error) {
        return http(title, HttpRequests.json(VECTOR, body), code, error);
    }
}
