package dev.nereid.distribution.parity;

import static dev.nereid.distribution.parity.Protocol.EMBEDDED;
import static dev.nereid.distribution.parity.Protocol.GRPC;
import static dev.nereid.distribution.parity.Protocol.GRPC_STREAM;
import static dev.nereid.distribution.parity.Protocol.HTTP_BINARY;
import static dev.nereid.distribution.parity.Protocol.HTTP_JSON;
import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.distribution.testing.TensorBytes.ints;
import static dev.nereid.distribution.testing.TensorBytes.strings;
import static dev.nereid.spi.ErrorCode.INVALID_ARGUMENT;
import static dev.nereid.spi.ErrorCode.NOT_FOUND;

import dev.nereid.api.InputTensor;
import java.util.Arrays;
import java.util.stream.Stream;

/** Requests that a model cannot serve. */
final class ScenarioErrors {
    private static final String ANONYMOUS = "[request id: <id_unknown>] ";
    private static final String FLOATS = ScenarioTypes.batching("FP32");
    private static final byte[] FOUR = floats(1, 2, 3, 4);
    /** The text of gRPC, as recorded. */
    private static final String RESERVED_BUT_ONE =
            "parameter keys starting with 'triton_' are reserved for Triton usage."
                    + " Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response";

    private static final String TOO_MANY_BYTES =
            "byte size for tensor 'INPUT0' exceeds maximum size of 9223372036854775807";

    private static final String COUNTED = "JSON has elements instead of bytes, and counts them itself";

    private ScenarioErrors() {}

    static Stream<Scenario> all() {
        return Stream.of(types(), names(), shapes(), sizes(), requests()).flatMap(scenarios -> scenarios);
    }

    /** Every type where floats are expected, or integers. */
    private static Stream<Scenario> types() {
        return ScenarioTypes.TYPES.stream().map(type -> {
            String expected = type.equals("FP32") ? "INT32" : "FP32";
            String model = ScenarioTypes.batching(expected);
            byte[] content = type.equals("BYTES") ? strings("a") : new byte[size(type)];
            return Scenario.of(type + " where " + expected + " is expected", model)
                    .in("INPUT0", type, content, 1, 1)
                    .fails(
                            INVALID_ARGUMENT,
                            ANONYMOUS + "inference input 'INPUT0' data-type is '" + type + "', but model '" + model
                                    + "' expects '" + expected + "'");
        });
    }

    private static int size(String type) {
        return type.equals("BOOL") ? 1 : Integer.parseInt(type.replaceAll("\\D", "")) / Byte.SIZE;
    }

    private static Stream<Scenario> names() {
        return Stream.of(
                Scenario.of("a model that is not there", "nobody")
                        .in("INPUT0", "FP32", FOUR, 1, 4)
                        .fails(NOT_FOUND, "Request for unknown model: 'nobody' is not found"),
                Scenario.of("an input that is not there", FLOATS)
                        .in("FOO", "FP32", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, "unexpected inference input 'FOO' for model 'batch_fp32'"),
                Scenarios.good("one input too many")
                        .in("FOO", "FP32", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, ""),
                Scenario.of("one input too few", Scenarios.PAIR)
                        .in("INPUT0", "INT32", ints(1, 2, 3, 4), 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "expected 2 inputs but got 1 inputs for model 'pair'."),
                Scenario.of("a required input left out beside an optional one", Scenarios.OPTIONAL)
                        .in("INPUT1", "FP32", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "expected number of inputs between 1 and 2 but got 1"),
                Scenario.of("no inputs", FLOATS)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "expected 1 inputs but got 0 inputs"),
                Scenarios.good("an input twice")
                        .in("INPUT0", "FP32", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, ""),
                Scenarios.good("an output that is not there")
                        .out("FOO")
                        .fails(INVALID_ARGUMENT, "unexpected inference output 'FOO' for model 'batch_fp32'"),
                Scenarios.good("an output that is not there beside one that is")
                        .out("OUTPUT0")
                        .out("FOO")
                        .fails(INVALID_ARGUMENT, "unexpected inference output 'FOO' for model 'batch_fp32'"),
                Scenarios.good("an output twice").out("OUTPUT0").out("OUTPUT0").fails(INVALID_ARGUMENT, ""));
    }

    private static Stream<Scenario> shapes() {
        return Stream.of(
                Scenario.of("no batch dimension", FLOATS)
                        .in("INPUT0", "FP32", FOUR, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS),
                Scenario.of("no dimensions", FLOATS)
                        .in("INPUT0", "FP32", floats(1))
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "input 'INPUT0' has no shape but model requires batch"),
                Scenario.of("a dimension too many", FLOATS)
                        .in("INPUT0", "FP32", FOUR, 1, 2, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "unexpected shape for input 'INPUT0'"),
                Scenario.of("a dimension too many without batches", ScenarioTypes.flat("FP32"))
                        .in("INPUT0", "FP32", FOUR, 1, 2, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "unexpected shape for input 'INPUT0'"),
                Scenario.of("as many dimensions as there may be", Scenarios.DEEP)
                        .in("INPUT0", "FP32", FOUR, dimensions(InputTensor.MAX_DIMENSIONS)),
                Scenario.of("more dimensions than there may be", Scenarios.DEEP)
                        .in("INPUT0", "FP32", FOUR, dimensions(InputTensor.MAX_DIMENSIONS + 1))
                        .fails(INVALID_ARGUMENT, "shape: more than 255 (expected: at most 255); input 'INPUT0'"),
                Scenario.of("another dimension than the model's", Scenarios.PAIR)
                        .in("INPUT0", "INT32", ints(1, 2, 3), 1, 3)
                        .in("INPUT1", "FP32", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "unexpected shape for input 'INPUT0'"),
                Scenario.of("a batch of none", FLOATS)
                        .in("INPUT0", "FP32", new byte[0], 0, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS),
                Scenario.of("a batch too large", FLOATS)
                        .in("INPUT0", "FP32", floats(new float[9]), 9, 1)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "inference request batch-size must be <= 8"),
                Scenario.of("batches that differ", Scenarios.PAIR)
                        .in("INPUT0", "INT32", ints(1, 2, 3, 4), 1, 4)
                        .in("INPUT1", "FP32", FOUR, 2, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS),
                Scenario.of("a negative dimension", FLOATS)
                        .in("INPUT0", "FP32", FOUR, 1, -4)
                        .fails(INVALID_ARGUMENT, "invalid shape for input 'INPUT0': shape [1,-4] contains one or more")
                        .but(GRPC, INVALID_ARGUMENT, "tensor 'INPUT0' contains an invalid dimension [1,-4]")
                        .but(GRPC_STREAM, INVALID_ARGUMENT, "tensor 'INPUT0' contains an invalid dimension [1,-4]")
                        .not("a shape over HTTP has unsigned numbers", HTTP_JSON, HTTP_BINARY),
                Scenario.of("more elements than can be counted", ScenarioTypes.flat("FP32"))
                        .in("INPUT0", "FP32", FOUR, 1L << 32, 1L << 32)
                        .fails(
                                INVALID_ARGUMENT,
                                "invalid shape for input 'INPUT0': shape [4294967296,4294967296] causes")
                        .but(GRPC, INVALID_ARGUMENT, TOO_MANY_BYTES)
                        .but(GRPC_STREAM, INVALID_ARGUMENT, TOO_MANY_BYTES),
                Scenario.of("more bytes than can be counted", ScenarioTypes.flat("FP32"))
                        .in("INPUT0", "FP32", FOUR, 1, Long.MAX_VALUE)
                        .fails(INVALID_ARGUMENT, "byte size overflow for input 'INPUT0'")
                        .but(GRPC, INVALID_ARGUMENT, TOO_MANY_BYTES)
                        .but(GRPC_STREAM, INVALID_ARGUMENT, TOO_MANY_BYTES),
                Scenario.of("a type that is not there", FLOATS)
                        .in("INPUT0", "FP31", FOUR, 1, 4)
                        .fails(INVALID_ARGUMENT, "")
                        .not("there is no JSON for such a type", HTTP_JSON));
    }

    /** Returns a shape of four elements. */
    private static long[] dimensions(int rank) {
        long[] shape = new long[rank];
        Arrays.fill(shape, 1);
        shape[rank / 2] = 4;
        return shape;
    }

    private static Stream<Scenario> sizes() {
        byte[] cut = Arrays.copyOf(strings("ab", "cd"), 10);
        byte[] cutLength = Arrays.copyOf(strings("ab", ""), 8);
        byte[] tooLong = strings("ab");
        tooLong[3] = 0x7F;
        String words = ScenarioTypes.batching("BYTES");
        return Stream.of(
                Scenario.of("an element too few", FLOATS)
                        .in("INPUT0", "FP32", floats(1, 2, 3), 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "input byte size mismatch for input 'INPUT0'")
                        .not(COUNTED, HTTP_JSON),
                Scenario.of("an element too many", FLOATS)
                        .in("INPUT0", "FP32", floats(1, 2, 3, 4, 5), 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "input byte size mismatch for input 'INPUT0'")
                        .not(COUNTED, HTTP_JSON),
                Scenario.of("a part of an element", FLOATS)
                        .in("INPUT0", "FP32", Arrays.copyOf(FOUR, 15), 1, 4)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "input byte size mismatch for input 'INPUT0'")
                        .not("JSON has no parts of elements", HTTP_JSON),
                Scenario.of("content where there are no elements", FLOATS)
                        .in("INPUT0", "FP32", FOUR, 1, 0)
                        .fails(INVALID_ARGUMENT, "")
                        .but(
                                HTTP_JSON,
                                INVALID_ARGUMENT,
                                "Unable to parse 'data': Shape does not match true shape of 'data' field"),
                Scenario.of("a string too few", words)
                        .in("INPUT0", "BYTES", strings("a"), 1, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "expected 2 string elements for inference input 'INPUT0'"),
                Scenario.of("a string too many", words)
                        .in("INPUT0", "BYTES", strings("a", "b"), 1, 1)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "unexpected number of string elements 2"),
                Scenario.of("a last string cut short", words)
                        .in("INPUT0", "BYTES", cut, 1, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "incomplete string data for inference input 'INPUT0'")
                        .not("JSON ends its strings itself", HTTP_JSON),
                Scenario.of("a string's length cut short", words)
                        .in("INPUT0", "BYTES", cutLength, 1, 2)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "incomplete string length indicator")
                        .not("JSON ends its strings itself", HTTP_JSON),
                Scenario.of("a last string longer than its input", words)
                        .in("INPUT0", "BYTES", tooLong, 1, 1)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "incomplete string data for inference input 'INPUT0'")
                        .not("JSON ends its strings itself", HTTP_JSON));
    }

    private static Stream<Scenario> requests() {
        return Stream.of(
                Scenario.of("an id in the error", FLOATS)
                        .withId("request-1")
                        .in("INPUT0", "INT32", ints(1), 1, 1)
                        .fails(
                                INVALID_ARGUMENT,
                                "[request id: request-1] inference input 'INPUT0' data-type is 'INT32'"),
                Scenario.of("an error of a decoupled model", Scenarios.SQUARE)
                        .in("IN", "FP32", floats(1), 1)
                        .fails(INVALID_ARGUMENT, ANONYMOUS + "inference input 'IN' data-type is 'FP32'")
                        .not(
                                "decoupled models are refused before their inputs are looked at",
                                HTTP_JSON,
                                HTTP_BINARY,
                                GRPC),
                Scenarios.good("a reserved parameter")
                        .withParameter("triton_x", 1L)
                        .fails(INVALID_ARGUMENT, "parameter keys starting with 'triton_' are reserved")
                        .but(GRPC, INVALID_ARGUMENT, RESERVED_BUT_ONE)
                        .but(GRPC_STREAM, INVALID_ARGUMENT, RESERVED_BUT_ONE)
                        .not("the port has fields for the reserved parameters of the protocols", EMBEDDED),
                Scenarios.good("a sequence for a model without sequences")
                        .withParameter("sequence_start", true)
                        .not("the port has fields for the reserved parameters of the protocols", EMBEDDED),
                Scenarios.good("an error beside a reserved parameter")
                        .withParameter("triton_x", "a")
                        .out("FOO")
                        .fails(INVALID_ARGUMENT, "parameter keys starting with 'triton_' are reserved")
                        .but(GRPC, INVALID_ARGUMENT, RESERVED_BUT_ONE)
                        .but(GRPC_STREAM, INVALID_ARGUMENT, RESERVED_BUT_ONE)
                        .not("the port has fields for the reserved parameters of the protocols", EMBEDDED));
    }
}
