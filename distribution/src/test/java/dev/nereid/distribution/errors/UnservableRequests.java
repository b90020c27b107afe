package dev.nereid.distribution.errors;

import static dev.nereid.distribution.errors.InvalidRequest.both;
import static dev.nereid.distribution.errors.InvalidRequest.grpc;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.distribution.testing.TensorBytes.ints;
import static dev.nereid.distribution.testing.TensorBytes.strings;
import static dev.nereid.spi.ErrorCode.INVALID_ARGUMENT;
import static dev.nereid.spi.ErrorCode.NOT_FOUND;
import static dev.nereid.spi.ErrorCode.UNAVAILABLE;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.ClientRequest;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import java.util.Arrays;
import java.util.stream.Stream;

/** Requests in good form that their model cannot serve. */
final class UnservableRequests {
    private static final byte[] FOUR = floats(1, 2, 3, 4);
    private static final byte[] SIXTEEN = ints(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    private static final String NO_ID = "[request id: <id_unknown>] ";
    private static final String BATCH_NOTE = " NOTE: Setting a non-zero max_batch_size in the model config requires a"
            + " batch dimension to be prepended to each input shape. If you want to specify the full shape including"
            + " the batch dim in your input dims config, try setting max_batch_size to zero. See the model"
            + " configuration docs for more info on max_batch_size.";

    private UnservableRequests() {}

    static Stream<InvalidRequest> all() {
        return Stream.of(models(), inputs(), batches(), contents(), grpcContents())
                .flatMap(rows -> rows);
    }

    private static Stream<InvalidRequest> models() {
        return Stream.of(
                both(
                        "unknown model",
                        ClientRequest.of("nobody").input("INPUT0", "FP32", FOUR, 1, 4),
                        NOT_FOUND,
                        "Request for unknown model: 'nobody' is not found"),
                both(
                        "unknown version",
                        InvalidRequests.good().withVersion("9"),
                        NOT_FOUND,
                        "Request for unknown model: 'vector' version 9 is not found"),
                both(
                        "no ready version",
                        ClientRequest.of(InvalidRequests.BROKEN).input("INPUT0", "FP32", FOUR, 4),
                        NOT_FOUND,
                        "Request for unknown model: 'broken' has no available versions"),
                both(
                        "version not ready",
                        ClientRequest.of(InvalidRequests.BROKEN)
                                .withVersion("1")
                                .input("INPUT0", "FP32", FOUR, 4),
                        UNAVAILABLE,
                        "Request for unknown model: 'broken' version 1 is not at ready state"));
    }

    private static Stream<InvalidRequest> inputs() {
        ClientRequest one = ClientRequest.of(InvalidRequests.PAIR).input("INPUT0", "INT32", SIXTEEN, 1, 16);
        return Stream.of(
                both(
                        "input missing",
                        one,
                        INVALID_ARGUMENT,
                        NO_ID + "expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) ['INPUT0'], but"
                                + " missing required input(s) ['INPUT1']. Please provide all required input(s)."),
                both(
                        "required input missing beside an optional one",
                        ClientRequest.of(InvalidRequests.CHOICE).input("INPUT1", "BYTES", strings("a"), 1, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "expected number of inputs between 1 and 2 but got 1 inputs for model 'choice'. Got"
                                + " input(s) ['INPUT1'], but missing required input(s) ['INPUT0']. Please provide"
                                + " all required input(s)."),
                both(
                        "unknown input",
                        ClientRequest.of(InvalidRequests.VECTOR).input("FOO", "FP32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        "unexpected inference input 'FOO' for model 'vector'"),
                both(
                        "unknown output",
                        InvalidRequests.good().output("FOO"),
                        INVALID_ARGUMENT,
                        "unexpected inference output 'FOO' for model 'vector'"),
                both(
                        "other datatype",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "INT32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "inference input 'INPUT0' data-type is 'INT32', but model 'vector' expects 'FP32'"),
                both(
                        "shape of a model that batches",
                        ClientRequest.of(InvalidRequests.PAIR)
                                .input("INPUT0", "INT32", ints(new int[15]), 1, 15)
                                .input("INPUT1", "INT32", SIXTEEN, 1, 16),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected shape for input 'INPUT0' for model 'pair'. Expected [-1,16], got [1,15]."
                                + BATCH_NOTE),
                both(
                        "shape of a model that does not batch",
                        ClientRequest.of(InvalidRequests.FLAT).input("INPUT0", "FP32", FOUR, 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected shape for input 'INPUT0' for model 'flat'. Expected [-1], got [1,4]. "),
                grpc(
                        "dimension left open",
                        ClientRequest.of(InvalidRequests.VECTOR)
                                .input("INPUT0", "FP32", FOUR, 1, -1)
                                .overGrpc(),
                        INVALID_ARGUMENT,
                        NO_ID + "All input dimensions should be specified for input 'INPUT0' for model 'vector', got"
                                + " [1,-1]"));
    }

    private static Stream<InvalidRequest> batches() {
        return Stream.of(
                both(
                        "scalar for a model that batches",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "FP32", floats(1)),
                        INVALID_ARGUMENT,
                        NO_ID + "input 'INPUT0' has no shape but model requires batch dimension for 'vector'"),
                both(
                        "batches that differ",
                        ClientRequest.of(InvalidRequests.PAIR)
                                .input("INPUT0", "INT32", ints(new int[32]), 2, 16)
                                .input("INPUT1", "INT32", SIXTEEN, 1, 16),
                        INVALID_ARGUMENT,
                        NO_ID + "input 'INPUT0' batch size does not match other inputs for 'pair'"),
                both(
                        "batch too large",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "FP32", floats(new float[65]), 65, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "inference request batch-size must be <= 64 for 'vector'"),
                both(
                        "batch of none",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "FP32", new byte[0], 0, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 0"));
    }

    private static Stream<InvalidRequest> contents() {
        byte[] cut = Arrays.copyOf(strings("ab", ""), 8);
        return Stream.of(
                both(
                        "too few bytes",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "FP32", floats(1, 2, 3), 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 12"),
                both(
                        "too many bytes",
                        ClientRequest.of(InvalidRequests.VECTOR).input("INPUT0", "FP32", floats(1, 2, 3, 4, 5), 1, 4),
                        INVALID_ARGUMENT,
                        NO_ID + "input byte size mismatch for input 'INPUT0' for model 'vector'. Expected 16, got 20"),
                both(
                        "string's length cut",
                        ClientRequest.of(InvalidRequests.WORDS).input("INPUT0", "BYTES", cut, 1, 2),
                        INVALID_ARGUMENT,
                        NO_ID + "incomplete string length indicator for inference input 'INPUT0' for model 'words',"
                                + " expecting 4 bytes but only 2 bytes available. Please make sure the string length"
                                + " indicator is in one buffer."),
                both(
                        "too many strings",
                        ClientRequest.of(InvalidRequests.WORDS).input("INPUT0", "BYTES", strings("a", "b"), 1, 1),
                        INVALID_ARGUMENT,
                        NO_ID + "unexpected number of string elements 2 for inference input 'INPUT0' for model"
                                + " 'words', expecting 1"),
                both(
                        "too few strings",
                        ClientRequest.of(InvalidRequests.WORDS).input("INPUT0", "BYTES", strings("a"), 1, 2),
                        INVALID_ARGUMENT,
                        NO_ID + "expected 2 string elements for inference input 'INPUT0' for model 'words', got 1"));
    }

    /** Defects that only gRPC can express: the place of an input's bytes. */
    private static Stream<InvalidRequest> grpcContents() {
        ModelInferRequest.Builder twice = InvalidRequests.good().overGrpc().toBuilder();
        twice.getInputsBuilder(0).setContents(InferTensorContents.newBuilder().addFp32Contents(1));
        ModelInferRequest.Builder other = InvalidRequests.good().withoutContents();
        other.getInputsBuilder(0).setContents(InferTensorContents.newBuilder().addIntContents(1));
        ModelInferRequest.Builder half = ClientRequest.of(InvalidRequests.PAIR)
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
}
