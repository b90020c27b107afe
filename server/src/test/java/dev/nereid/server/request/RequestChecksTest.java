package dev.nereid.server.request;

import static dev.nereid.server.request.InferRequests.bytes;
import static dev.nereid.server.request.InferRequests.input;
import static dev.nereid.server.request.InferRequests.request;
import static dev.nereid.server.request.InferRequests.strings;
import static dev.nereid.server.request.InferRequests.zeros;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

class RequestChecksTest {
    private static final String UNKNOWN_ID = "[request id: <id_unknown>] ";
    private static final String NOTE = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch"
            + " dimension to be prepended to each input shape. If you want to specify the full shape including the"
            + " batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration"
            + " docs for more info on max_batch_size.";

    /** Two inputs of 16 INT32 each, batches of up to 8. */
    private static final RequestChecks SIMPLE = RequestChecks.forModel(
            ModelSettings.builder("m", 3)
                    .maxBatchSize(8)
                    .input(TensorSpec.of("a", DataType.INT32, Shape.of(16)))
                    .input(TensorSpec.of("b", DataType.INT32, Shape.of(16)))
                    .output(TensorSpec.of("x", DataType.INT32, Shape.of(16)))
                    .output(TensorSpec.of("y", DataType.INT32, Shape.of(16)))
                    .output(TensorSpec.of("z", DataType.INT32, Shape.of(16)))
                    .build(),
            Map.of());

    private static final RequestChecks VARIABLE = one(4, TensorSpec.of("a", DataType.FP32, Shape.of(-1)));
    private static final RequestChecks UNBATCHED = one(0, TensorSpec.of("a", DataType.FP32, Shape.of(-1)));
    private static final RequestChecks TEXT = one(4, TensorSpec.of("a", DataType.BYTES, Shape.of(-1)));
    private static final RequestChecks OPTIONAL = RequestChecks.forModel(
            ModelSettings.builder("m", 1)
                    .maxBatchSize(8)
                    .input(TensorSpec.of("a", DataType.FP32, Shape.of(1)))
                    .input(TensorSpec.of("b", DataType.FP32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL))
                    .input(TensorSpec.of("c", DataType.FP32, Shape.of(1)).with(TensorSpec.Trait.OPTIONAL))
                    .build(),
            Map.of());

    private static RequestChecks one(int maxBatchSize, TensorSpec input) {
        return RequestChecks.forModel(
                ModelSettings.builder("m", 1)
                        .maxBatchSize(maxBatchSize)
                        .input(input)
                        .output(TensorSpec.of("x", DataType.FP32, Shape.of(-1)))
                        .build(),
                Map.of());
    }

    private static InputTensor simple(String name, long batch) {
        return zeros(name, "INT32", (int) batch * 64, batch, 16);
    }

    private static InputTensor floats(int count, long... dims) {
        return zeros("a", "FP32", count * Float.BYTES, dims);
    }

    static final List<Arguments> REFUSED = List.of(
            Arguments.of(
                    SIMPLE,
                    request(),
                    UNKNOWN_ID + "expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing"
                            + " required input(s) ['a','b']. Please provide all required input(s)."),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 1)),
                    UNKNOWN_ID + "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['a'], but missing"
                            + " required input(s) ['b']. Please provide all required input(s)."),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 1), simple("b", 1), simple("c", 1)),
                    UNKNOWN_ID + "expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['c','b','a'], but"
                            + " missing required input(s) ]. Please provide all required input(s)."),
            Arguments.of(
                    OPTIONAL,
                    request(),
                    UNKNOWN_ID + "expected number of inputs between 1 and 3 but got 0 inputs for model 'm'. Got"
                            + " input(s) [], but missing required input(s) ['a']. Please provide all required"
                            + " input(s)."),
            Arguments.of(
                    OPTIONAL,
                    request(zeros("b", "FP32", 4, 1, 1)),
                    UNKNOWN_ID + "expected number of inputs between 1 and 3 but got 1 inputs for model 'm'. Got"
                            + " input(s) ['b'], but missing required input(s) ['a']. Please provide all required"
                            + " input(s)."),
            Arguments.of(
                    OPTIONAL,
                    request(zeros("a", "FP32", 4, 1, 1), zeros("d", "FP32", 4, 1, 1)),
                    "unexpected inference input 'd' for model 'm'"),
            Arguments.of(
                    SIMPLE, request(simple("a", 1), simple("c", 1)), "unexpected inference input 'c' for model 'm'"),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 1), simple("a", 1)),
                    UNKNOWN_ID + "input 'a' already exists in request"),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 1), simple("q", 1), simple("q", 1), simple("p", 1)),
                    UNKNOWN_ID + "input 'q' already exists in request"),
            Arguments.of(SIMPLE, outputs("x", "nope"), "unexpected inference output 'nope' for model 'm'"),
            Arguments.of(SIMPLE, outputs("x", "y", "x"), UNKNOWN_ID + "output 'x' already exists in request"),
            Arguments.of(SIMPLE, outputs("no", "x", "no"), UNKNOWN_ID + "output 'no' already exists in request"),
            Arguments.of(
                    SIMPLE,
                    request(zeros("a", "INT32", 64, 1, 16), zeros("b", "INT32", 4)),
                    UNKNOWN_ID + "input 'b' has no shape but model requires batch dimension for 'm'"),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 2), simple("b", 1)),
                    UNKNOWN_ID + "input 'a' batch size does not match other inputs for 'm'"),
            Arguments.of(
                    SIMPLE,
                    request(simple("a", 9), simple("b", 9)),
                    UNKNOWN_ID + "inference request batch-size must be <= 8 for 'm'"),
            Arguments.of(
                    SIMPLE,
                    request(zeros("a", "INT32", 64, 1L << 32, 16), zeros("b", "INT32", 64, 1L << 32, 16)),
                    UNKNOWN_ID + "inference request batch-size must be <= 8 for 'm'"),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, -1, 4)),
                    UNKNOWN_ID + "inference request batch-size must be <= 4 for 'm'"),
            Arguments.of(
                    VARIABLE,
                    request(zeros("a", "INT32", 16, 1, 4)),
                    UNKNOWN_ID + "inference input 'a' data-type is 'INT32', but model 'm' expects 'FP32'"),
            Arguments.of(
                    VARIABLE,
                    request(zeros("a", "TYPE_FP32", 16, 1, 4)),
                    UNKNOWN_ID + "inference input 'a' data-type is '<invalid>', but model 'm' expects 'FP32'"),
            Arguments.of(
                    SIMPLE,
                    request(zeros("a", "INT32", 60, 1, 15), simple("b", 1)),
                    UNKNOWN_ID + "unexpected shape for input 'a' for model 'm'. Expected [-1,16], got [1,15]. " + NOTE),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 4)),
                    UNKNOWN_ID + "unexpected shape for input 'a' for model 'm'. Expected [-1,-1], got [4]. " + NOTE),
            Arguments.of(
                    UNBATCHED,
                    request(floats(4, 1, 4)),
                    UNKNOWN_ID + "unexpected shape for input 'a' for model 'm'. Expected [-1], got [1,4]. "),
            Arguments.of(
                    UNBATCHED,
                    request(floats(1)),
                    UNKNOWN_ID + "unexpected shape for input 'a' for model 'm'. Expected [-1], got []. "),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 1, -1)),
                    UNKNOWN_ID + "All input dimensions should be specified for input 'a' for model 'm', got [1,-1]"),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 1, -4)),
                    "invalid shape for input 'a': shape [1,-4] contains one or more invalid dimensions"),
            Arguments.of(
                    VARIABLE,
                    request(floats(3, 1, 4)),
                    UNKNOWN_ID + "input byte size mismatch for input 'a' for model 'm'. Expected 16, got 12"),
            Arguments.of(
                    VARIABLE,
                    request(zeros("a", "FP32", 15, 1, 4)),
                    UNKNOWN_ID + "input byte size mismatch for input 'a' for model 'm'. Expected 16, got 15"),
            Arguments.of(
                    VARIABLE,
                    request(floats(0, 0, 4)),
                    UNKNOWN_ID + "input byte size mismatch for input 'a' for model 'm'. Expected 16, got 0"),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 0, 4)),
                    UNKNOWN_ID + "inference request batch-size must be >= 1 for 'm'"),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 4, 1L << 62)),
                    "invalid shape for input 'a': shape [4,4611686018427387904] causes total element count to exceed"
                            + " maximum size of 9223372036854775807"),
            Arguments.of(
                    VARIABLE,
                    request(floats(4, 1, 1L << 62)),
                    "byte size overflow for input 'a': element count (4611686018427387904) * data type size (4)"
                            + " exceeds maximum allowed size (9223372036854775807)"),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", bytes(2, 0, 0, 0, 'a', 'b', 1, 0), 1, 2)),
                    UNKNOWN_ID + "incomplete string length indicator for inference input 'a' for model 'm', expecting"
                            + " 4 bytes but only 2 bytes available. Please make sure the string length indicator is in"
                            + " one buffer."),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", bytes(1, 0, 0, 0, 'a', 'd', 0, 0, 0, 'a'), 1, 2)),
                    UNKNOWN_ID + "incomplete string data for inference input 'a' for model 'm', expecting string of"
                            + " length 100 but only 1 bytes available."),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", bytes(255, 255, 255, 255), 1, 1)),
                    UNKNOWN_ID + "incomplete string data for inference input 'a' for model 'm', expecting string of"
                            + " length 4294967295 but only 0 bytes available."),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", strings("a"), 1, 0)),
                    UNKNOWN_ID + "unexpected number of string elements 1 for inference input 'a' for model 'm',"
                            + " expecting 0"),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", strings("a", "b", "c"), 1, 2)),
                    UNKNOWN_ID + "unexpected number of string elements 3 for inference input 'a' for model 'm',"
                            + " expecting 2"),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", strings("a"), 1, 2)),
                    UNKNOWN_ID + "expected 2 string elements for inference input 'a' for model 'm', got 1"),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", strings(), 1, 1)),
                    UNKNOWN_ID + "expected 1 string elements for inference input 'a' for model 'm', got 0"),
            Arguments.of(
                    TEXT,
                    request(input("a", "BYTES", strings("a"), 4, 1L << 62)),
                    "invalid shape for input 'a': shape [4,4611686018427387904] causes total element count to exceed"
                            + " maximum size of 9223372036854775807"));

    private static InferRequest outputs(String... outputs) {
        return request("", List.of(simple("a", 1), simple("b", 1)), List.of(outputs));
    }

    @ParameterizedTest
    @FieldSource("REFUSED")
    void refusesWhatDoesNotFitInTheReferencesWords(RequestChecks checks, InferRequest request, String message) {
        InferenceException error = refusal(checks, request);

        assertThat(error.publicMessage()).isEqualTo(message);
        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    /** Before every other check: also for ensembles, models and programs that send requests. */
    @Test
    void refusesALongSequenceId() {
        for (boolean isTooLong : List.of(true, false)) {
            Sequence.Id id = new Sequence.Id.Text("x".repeat(isTooLong ? 129 : 128));
            InferRequest request = new InferRequest(
                    ModelRef.latest("m"),
                    "",
                    List.of(zeros("unknown", "INT32", 4, 1)),
                    List.of(),
                    Map.of(),
                    new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(new Sequence(id, true, false))),
                    () -> {});
            assertThatThrownBy(() -> SIMPLE.check(request, 0))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            error -> assertThat(error.code())
                                    .isEqualTo(isTooLong ? ErrorCode.UNSUPPORTED : ErrorCode.INVALID_ARGUMENT))
                    .hasMessageContaining(
                            isTooLong ? "string correlation ID cannot be longer than 128 characters" : "unknown");
        }
    }

    @Test
    void startsWithTheIdThatTheCallerGave() {
        InferenceException error = refusal(VARIABLE, request("7", List.of(floats(3, 1, 4)), List.of()));

        assertThat(error.publicMessage())
                .isEqualTo("[request id: 7] input byte size mismatch for input 'a' for model 'm'. Expected 16, got 12");
    }

    @Test
    void reportsTheFirstOfSeveralErrors() {
        List<InputTensor> wrongInputs = List.of(zeros("q", "INT8", 1, 99), zeros("q", "INT8", 1, 99));

        assertThat(refusal(SIMPLE, request("", wrongInputs, List.of("no", "no")))
                        .publicMessage())
                .isEqualTo(UNKNOWN_ID + "input 'q' already exists in request");
        assertThat(refusal(SIMPLE, request("", wrongInputs.subList(0, 1), List.of("no", "no")))
                        .publicMessage())
                .isEqualTo(UNKNOWN_ID + "output 'no' already exists in request");
        assertThat(refusal(SIMPLE, request("", wrongInputs.subList(0, 1), List.of("no", "ni")))
                        .publicMessage())
                .isEqualTo("unexpected inference output 'ni' for model 'm'");
        assertThat(refusal(SIMPLE, request(zeros("a", "INT8", 1, 99), zeros("b", "INT8", 1, 1)))
                        .publicMessage())
                .isEqualTo(UNKNOWN_ID + "input 'a' batch size does not match other inputs for 'm'");
        assertThat(refusal(SIMPLE, request(zeros("a", "INT8", 1, 1), zeros("b", "INT32", 1, 1, 15)))
                        .publicMessage())
                .startsWith(UNKNOWN_ID + "unexpected shape for input 'b' for model 'm'.");
    }

    @Test
    void passesOnWhatFits() {
        InputTensor a = simple("a", 2);
        InputTensor b = simple("b", 2);
        AtomicInteger releases = new AtomicInteger();
        RequestOptions options = new RequestOptions(1, 2, OptionalLong.of(3), Optional.empty());
        Map<String, ParameterValue> parameters = Map.of("p", new ParameterValue.Int(1));

        CheckedRequest checked = SIMPLE.check(
                new InferRequest(
                        new ModelRef("m", 3),
                        "id",
                        List.of(b, a),
                        List.of(RequestedOutput.of("z"), RequestedOutput.of("x")),
                        parameters,
                        options,
                        releases::incrementAndGet),
                0);

        assertThat(checked.model()).isEqualTo("m");
        assertThat(checked.version()).isEqualTo(3);
        assertThat(checked.batchSize()).isEqualTo(2);
        assertThat(checked.id()).isEqualTo("id");
        assertThat(checked.inputs()).extracting(NamedTensor::name).containsExactly("a", "b");
        assertThat(checked.inputs().getFirst().tensor().data()).isSameAs(a.data());
        assertThat(checked.inputs().getLast().tensor().shape()).isEqualTo(Shape.of(2, 16));
        assertThat(checked.outputs().names()).containsExactly("x", "z");
        assertThat(checked.parameters()).isSameAs(parameters);
        assertThat(checked.options()).isSameAs(options);
        assertThat(releases).hasValue(0);
        checked.releaseInputs();
        assertThat(releases).hasValue(1);
    }

    @Test
    void wantsAllOutputsWhereNoneIsNamed() {
        assertThat(SIMPLE.check(outputs(), 0).outputs().names()).containsExactly("x", "y", "z");
        assertThat(SIMPLE.check(outputs("z", "y", "x"), 0).outputs().names()).containsExactly("x", "y", "z");
    }

    @Test
    void leavesOutOptionalInputs() {
        CheckedRequest checked = OPTIONAL.check(request(zeros("c", "FP32", 4, 1, 1), zeros("a", "FP32", 4, 1, 1)), 0);

        assertThat(checked.inputs()).extracting(NamedTensor::name).containsExactly("a", "c");
    }

    @Test
    void countsARequestToAModelThatDoesNotBatchAsOne() {
        CheckedRequest checked = UNBATCHED.check(request(floats(3, 3)), 0);

        assertThat(checked.batchSize()).isEqualTo(1);
        assertThat(shape(checked)).isEqualTo(Shape.of(3));
    }

    @Test
    void takesTensorsWithoutElements() {
        assertThat(shape(VARIABLE.check(request(floats(0, 2, 0)), 0))).isEqualTo(Shape.of(2, 0));
        assertThat(shape(UNBATCHED.check(request(floats(0, 0)), 0))).isEqualTo(Shape.of(0));
        assertThat(shape(TEXT.check(request(input("a", "BYTES", strings(), 1, 0)), 0)))
                .isEqualTo(Shape.of(1, 0));
    }

    static final List<Arguments> RESHAPES = List.of(
            Arguments.of(Shape.of(1), Shape.SCALAR, new long[] {2, 1}, Shape.of(2)),
            Arguments.of(Shape.of(4), Shape.of(2, 2), new long[] {2, 4}, Shape.of(2, 2, 2)),
            Arguments.of(Shape.of(-1), Shape.of(1, -1), new long[] {2, 5}, Shape.of(2, 1, 5)),
            Arguments.of(
                    Shape.of(2, -1, 4, -1, 3),
                    Shape.of(-1, 6, -1),
                    new long[] {1, 2, 7, 4, 0, 3},
                    Shape.of(1, 7, 6, 0)));

    @ParameterizedTest
    @FieldSource("RESHAPES")
    void showsBackendsTheShapeTheyExpect(Shape dims, Shape reshape, long[] claimed, Shape seen) {
        RequestChecks checks = one(8, TensorSpec.of("a", DataType.FP32, dims).withReshape(reshape));
        int bytes = (int) seen.byteSize(DataType.FP32);

        CheckedRequest checked = checks.check(request(zeros("a", "FP32", bytes, claimed)), 0);

        assertThat(shape(checked)).isEqualTo(seen);
    }

    @Test
    void checksTheSizeOfTheReshapedTensor() {
        RequestChecks checks =
                one(8, TensorSpec.of("a", DataType.FP32, Shape.of(-1)).withReshape(Shape.of(1, -1)));

        assertThat(refusal(checks, request(floats(4, 1, 5))).publicMessage()).endsWith("Expected 20, got 16");
    }

    @Test
    void leavesShapeTensorsWithoutBatchDimension() {
        RequestChecks checks = RequestChecks.forModel(
                ModelSettings.builder("m", 1)
                        .maxBatchSize(4)
                        .input(TensorSpec.of("a", DataType.FP32, Shape.of(2)))
                        .input(TensorSpec.of("s", DataType.INT32, Shape.of(3)).with(TensorSpec.Trait.SHAPE_TENSOR))
                        .build(),
                Map.of());

        CheckedRequest checked = checks.check(request(floats(6, 3, 2), zeros("s", "INT32", 12, 3)), 0);

        assertThat(checked.batchSize()).isEqualTo(3);
        assertThat(checked.inputs().getLast().tensor().shape()).isEqualTo(Shape.of(3));
    }

    @Test
    void countsStringsOfAnyContent() {
        MemorySegment data = strings("", "a\0b", "\u00e9", "x".repeat(300));

        CheckedRequest checked = TEXT.check(request(input("a", "BYTES", data, 2, 2)), 0);

        assertThat(checked.inputs().getFirst().tensor().data()).isSameAs(data);
    }

    @Test
    void quotesNoMoreThanABeginningOfLongNames() {
        String name = "x".repeat(10_000_000);
        InferRequest request = request(name, List.of(input(name, "FP32", strings(), 1, 1)), List.of());

        assertThatThrownBy(() -> TEXT.check(request, 0))
                .hasMessageContaining("'" + "x".repeat(256) + "…'")
                .satisfies(error -> assertThat(error.getMessage()).hasSizeLessThan(1000));
    }

    @Test
    void neverReadsMemoryOfADevice() {
        MemorySegment device = MemorySegment.ofAddress(16);
        InputTensor input =
                InputTensor.of("a", "BYTES", new long[] {1, 7}, device, new MemoryPlace(MemoryPlace.Kind.GPU, 0));

        assertThat(shape(TEXT.check(request(input), 0))).isEqualTo(Shape.of(1, 7));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8, 9, 40})
    void findsInputsOfAnyNumberInAnyOrder(int count) {
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1);
        List<InputTensor> inputs = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            settings.input(TensorSpec.of("in" + i, DataType.INT8, Shape.of(1)));
            settings.output(TensorSpec.of("out" + i, DataType.INT8, Shape.of(1)));
            inputs.addFirst(zeros("in" + i, "INT8", 1, 1));
            names.add("in" + i);
        }

        CheckedRequest checked =
                RequestChecks.forModel(settings.build(), Map.of()).check(request("", inputs, List.of("out0")), 0);

        assertThat(checked.inputs()).extracting(NamedTensor::name).isEqualTo(names);
        assertThat(checked.outputs().names()).containsExactly("out0");
    }

    private static Shape shape(CheckedRequest checked) {
        return checked.inputs().getFirst().tensor().shape();
    }

    private static InferenceException refusal(RequestChecks checks, InferRequest request) {
        return catchThrowableOfType(InferenceException.class, () -> checks.check(request, 0));
    }

    @Test
    void paddedInputsHaveTheirBytesAndDimensions() {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .input(TensorSpec.of("a", DataType.FP32, Shape.of(13, -1, 1)).with(TensorSpec.Trait.NON_LINEAR_FORMAT))
                .build();
        RequestChecks checks = RequestChecks.forModel(settings, Map.of("a", Shape.of(32, -1, 1)));

        Tensor tensor = checks.check(request(floats(2 * 32 * 5, 2, 13, 5, 1)), 0)
                .inputs()
                .getFirst()
                .tensor();

        assertThat(tensor.shape()).isEqualTo(Shape.of(2, 32, 5, 1));
        for (int elements : new int[] {2 * 13 * 5, 2 * 32 * 5 + 1}) {
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> checks.check(request(floats(elements, 2, 13, 5, 1)), 0))
                    .withMessageContaining("input byte size mismatch for input 'a' for model 'm'. Expected 1280, got "
                            + elements * 4L);
        }
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> checks.check(request(floats(2 * 32 * 5, 2, 32, 5, 1)), 0))
                .withMessageContaining("[-1,13,-1,1]");
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> RequestChecks.forModel(settings, Map.of("a", Shape.of(32))))
                .withMessage("input 'a' of model 'm': padded to [32] (expected: 3 dimensions, as the input has)");
    }
}
