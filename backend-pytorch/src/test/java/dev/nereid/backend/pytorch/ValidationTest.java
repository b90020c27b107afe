package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Configurations that do not agree with their module: the text of the reference server, then what helps. */
class ValidationTest {
    private static final String NOT_UNSIGNED =
            " (expected: a type of PyTorch, not an unsigned one of 16, 32 or 64 bits)";

    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    private static final String ONE = """
            def forward(self, x: Tensor) -> Tensor:
                return x
            """;

    private static final String TWO = """
            def forward(self, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
                return a + b, a - b
            """;

    private static final String FOUR = """
            def forward(self, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tuple[Tensor, Tensor]:
                return a + b + c + d, b
            """;

    private static final String TEXT = """
            def forward(self, x: List[str]) -> List[str]:
                return x
            """;

    private static final String DICTIONARY = """
            def forward(self, x: Dict[str, Tensor]) -> Dict[str, Tensor]:
                return {'sum': x['a'] + x['b'], 'a': x['a']}
            """;

    @TempDir
    private Path directory;

    private CheckedBackend test;

    @BeforeEach
    void open() {
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }

    private static TensorSpec floats(String name) {
        return TensorSpec.of(name, DataType.FP32, OPEN);
    }

    private static ModelSettingsBuilder one(String input, String output) {
        return settings().input(floats(input)).output(floats(output));
    }

    private static ModelSettingsBuilder two(String first, String second) {
        return settings()
                .input(floats(first))
                .input(floats(second))
                .output(floats("OUTPUT__0"))
                .output(floats("OUTPUT__1"));
    }

    private static SequenceBatching sequences() {
        return SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1));
    }

    private static ControlInput start(String name) {
        return new ControlInput(ControlInput.Kind.SEQUENCE_START, name, DataType.FP32);
    }

    private static StateSpec state(String input, String output, DataType type) {
        return StateSpec.of(input, output, type, OPEN);
    }

    private void isRefused(String source, ModelSettingsBuilder settings, ErrorCode code, String text) {
        ScriptFiles.write(directory, source);
        BackendException refusal = test.refusal(settings);
        assertThat(refusal).hasMessage(text);
        assertThat(refusal.code()).isEqualTo(code);
    }

    private List<String> warnings() {
        return test.log().stream().filter(line -> line.startsWith("WARNING ")).toList();
    }

    @Test
    void noFile() {
        BackendException refusal = test.refusal(one("x", "OUTPUT__0"));

        assertThat(refusal).hasMessage("unable to find 'm/1/model.pt' for model instance 'm'");
        assertThat(refusal.code()).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void noFileOfAnotherName() {
        BackendException refusal = test.refusal(one("x", "OUTPUT__0").modelFilename("net/other.pt"));

        assertThat(refusal).hasMessage("unable to find 'm/1/net/other.pt' for model instance 'm'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"../model.pt", "/etc/passwd", ".", "a/../.."})
    void fileOutsideOfTheVersion(String name) {
        BackendException refusal = test.refusal(one("x", "OUTPUT__0").modelFilename(name));

        assertThat(refusal)
                .hasMessage("unable to load model 'm', default_model_filename: '" + name
                        + "' (expected: a path within the model's directory)");
        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void parametersAreCheckedBeforeTheFile() {
        assertThat(test.with("INFERENCE_MODE", "maybe").refusal(one("x", "OUTPUT__0")))
                .hasMessageStartingWith("failed to convert 'maybe' to boolean; ");
    }

    @Test
    void optionalInput() {
        isRefused(
                ONE,
                settings().input(floats("x").with(TensorSpec.Trait.OPTIONAL)).output(floats("OUTPUT__0")),
                ErrorCode.INVALID_ARGUMENT,
                "'optional' is set to true for input 'x' while the backend model doesn't support optional input");
    }

    @ParameterizedTest
    @ValueSource(strings = {"START", "START__x", "a__b__1", "START__-1", "START_1"})
    void controlWithoutIndex(String name) {
        isRefused(
                TWO,
                one("a__0", "OUTPUT__0").sequenceBatching(sequences().with(start(name))),
                ErrorCode.INTERNAL,
                "input '" + name + "' does not follow <name>__<index> naming convention.");
    }

    @Test
    void controlsAreCheckedBeforeInputs() {
        isRefused(
                ONE,
                settings().sequenceBatching(sequences().with(start("START"))),
                ErrorCode.INTERNAL,
                "input 'START' does not follow <name>__<index> naming convention.");
    }

    @ParameterizedTest
    @CsvSource({"UINT64, TYPE_UINT64", "UINT32, TYPE_UINT32", "BYTES, TYPE_STRING"})
    void typeOfCorrelationId(DataType type, String name) {
        ControlInput control = new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "ID__1", type);
        isRefused(
                TWO,
                one("a__0", "OUTPUT__0").sequenceBatching(sequences().with(control)),
                ErrorCode.INTERNAL,
                "input 'ID__1' type '" + name + "' is not supported by PyTorch.");
    }

    @ParameterizedTest
    @CsvSource({"INT64", "INT32"})
    void correlationId(DataType type) {
        ScriptFiles.write(directory, TWO);
        ControlInput control = new ControlInput(ControlInput.Kind.SEQUENCE_CORRID, "ID__1", type);

        test.load(one("a__0", "OUTPUT__0").sequenceBatching(sequences().with(control)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a: Tensor, b: Dict[str, Tensor]",
                "a: Dict[str, Tensor], b: Dict[str, Tensor]",
                "a: int, b: Dict[str, Tensor]",
                "a: Dict[str, Tensor], b: Tensor, c: Dict[str, Tensor]"
            })
    void secondDictionary(String arguments) {
        isRefused(
                "def forward(self, " + arguments + ") -> int:\n    return 1\n",
                two("a", "b"),
                ErrorCode.INTERNAL,
                "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is"
                        + " supported.");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "a: int, b: Tensor | int",
                "a: Tensor, b: float | float",
                "a: Tensor, b: float = 2.0 | float",
                "a: Optional[Tensor], b: Tensor | Tensor?",
                "a: Tuple[Tensor, Tensor], b: Tensor | (Tensor, Tensor)",
                "a: Dict[str, Tensor], b: Tensor | Dict(str, Tensor)",
                "a: str, b: int | str",
                "a: bool, b: Tensor | bool"
            })
    void argumentOfAnotherType(String arguments, String type) {
        isRefused(
                "def forward(self, " + arguments + ") -> int:\n    return 1\n",
                two("a", "b"),
                ErrorCode.INTERNAL,
                "An input of type '" + type + "' was detected in the model. Only a single input of type Dict(str,"
                        + " Tensor) or input(s) of type Tensor are supported.");
    }

    @Test
    void tooFewInputs() {
        isRefused(
                TWO,
                one("a", "OUTPUT__0"),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', configuration expects 1 inputs, model provides 2: forward(Tensor a, Tensor b)"
                        + " -> (Tensor, Tensor)");
    }

    @Test
    void tooManyInputs() {
        isRefused(
                ONE,
                two("x", "y"),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', configuration expects 2 inputs, model provides 1: forward(Tensor x) ->"
                        + " Tensor");
    }

    @Test
    void controlsBatchInputsAndStatesCount() {
        BatchInput derived = new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("N__1"), DataType.INT32, "INPUT__0");
        isRefused(
                ONE,
                one("INPUT__0", "OUTPUT__0")
                        .batchInput(derived)
                        .sequenceBatching(
                                sequences().with(start("START__2")).with(state("STATE__3", "NEXT__1", DataType.FP32))),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', configuration expects 4 inputs, model provides 1: forward(Tensor x) ->"
                        + " Tensor");
    }

    @Test
    void controlsBatchInputsAndStatesByIndex() {
        ScriptFiles.write(directory, FOUR);
        BatchInput derived = new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("N__1"), DataType.INT32, "INPUT__0");

        test.load(one("INPUT__0", "OUTPUT__0")
                .batchInput(derived)
                .sequenceBatching(
                        sequences().with(start("START__2")).with(state("STATE__3", "NEXT__1", DataType.FP32))));

        assertThat(warnings()).isEmpty();
    }

    @Test
    void noInputsFailAtTheirCount() {
        isRefused(
                TWO,
                settings(),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', configuration expects 0 inputs, model provides 2: forward(Tensor a, Tensor b)"
                        + " -> (Tensor, Tensor)");
    }

    @Test
    void noInputForAFunctionWithout() {
        isRefused(
                "def forward(self) -> Tensor:\n    return torch.ones(1)\n",
                settings().output(floats("OUTPUT__0")),
                ErrorCode.INTERNAL,
                "model configuration must contain at least one input, none were specified.");
    }

    @Test
    void noInputForADictionary() {
        isRefused(
                DICTIONARY,
                settings().output(floats("sum")),
                ErrorCode.INTERNAL,
                "model configuration must contain at least one input, none were specified.");
    }

    @Test
    void noOutput() {
        isRefused(
                ONE,
                settings().input(floats("x")),
                ErrorCode.INTERNAL,
                "model configuration must contain at least one output, none were specified.");
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"UINT16", "UINT32", "UINT64"})
    void types(DataType type) {
        String name = type.configName();
        isRefused(
                ONE,
                settings().input(TensorSpec.of("x", type, OPEN)).output(floats("OUTPUT__0")),
                ErrorCode.INTERNAL,
                "unsupported datatype " + name + " for input 'x' for model 'm'" + NOT_UNSIGNED);
        isRefused(
                ONE,
                settings().input(floats("x")).output(TensorSpec.of("OUTPUT__0", type, OPEN)),
                ErrorCode.INTERNAL,
                "unsupported datatype " + name + " for output 'OUTPUT__0' for model 'm'" + NOT_UNSIGNED);
        isRefused(
                TWO,
                one("INPUT__0", "OUTPUT__0").sequenceBatching(sequences().with(state("STATE__1", "NEXT__1", type))),
                ErrorCode.INTERNAL,
                "unsupported datatype " + name + " for input state 'STATE__1' for model 'm'" + NOT_UNSIGNED);
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64"})
    void supportedTypes(DataType type) {
        ScriptFiles.write(directory, ONE);

        test.load(settings().input(TensorSpec.of("x", type, OPEN)).output(TensorSpec.of("OUTPUT__0", type, OPEN)));
    }

    @ParameterizedTest
    @CsvSource({"0, 2", "8, 1", "8, 2"})
    void textsOfMoreDimensions(int maxBatchSize, int rank) {
        Shape dims = Shape.of(rank == 2 ? new long[] {-1, -1} : new long[] {-1});
        isRefused(
                TEXT,
                settings()
                        .maxBatchSize(maxBatchSize)
                        .input(TensorSpec.of("x", DataType.BYTES, dims))
                        .output(TensorSpec.of("OUTPUT__0", DataType.BYTES, dims)),
                ErrorCode.INTERNAL,
                "Triton only supports 1 dimensional List of String as input for 'x' for model 'm'");
        isRefused(
                "def forward(self, x: Tensor) -> List[str]:\n    return ['']\n",
                settings()
                        .maxBatchSize(maxBatchSize)
                        .input(floats("x"))
                        .output(TensorSpec.of("OUTPUT__0", DataType.BYTES, dims)),
                ErrorCode.INTERNAL,
                "Triton only supports 1 dimensional List of String as output for 'OUTPUT__0' for model 'm'");
    }

    @Test
    void textsOfABatch() {
        ScriptFiles.write(directory, TEXT);
        TensorSpec input = TensorSpec.of("x", DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR);
        TensorSpec output =
                TensorSpec.of("OUTPUT__0", DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR);

        test.load(settings().maxBatchSize(8).input(input).output(output));
    }

    @Test
    void textForATensor() {
        isRefused(
                ONE,
                settings().input(TensorSpec.of("x", DataType.BYTES, OPEN)).output(floats("OUTPUT__0")),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'x': TYPE_STRING for the argument Tensor x (expected: an argument"
                        + " List[str])");
    }

    @Test
    void tensorForATextAndForAnotherList() {
        isRefused(
                TEXT,
                settings().input(floats("x")).output(TensorSpec.of("OUTPUT__0", DataType.BYTES, OPEN)),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'x': a tensor for the argument str[] x (expected: TYPE_STRING)");
        isRefused(
                "def forward(self, x: List[int]) -> int:\n    return x[0]\n",
                one("x", "OUTPUT__0"),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'x': a tensor for the argument int[] x (expected: an argument"
                        + " Tensor)");
    }

    @Test
    void textInADictionaryOfTensors() {
        isRefused(
                DICTIONARY,
                settings()
                        .input(floats("a"))
                        .input(TensorSpec.of("b", DataType.BYTES, OPEN))
                        .output(floats("sum")),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'b': TYPE_STRING for the argument Dict(str, Tensor) x (expected: a"
                        + " tensor for each key)");
    }

    @ParameterizedTest
    @CsvSource({"a, OUTPUT__0", "INPUT__0, OUTPUT", "INPUT, OUTPUT__0"})
    void stateAndNamesWithoutIndex(String input, String output) {
        isRefused(
                TWO,
                one(input, output).sequenceBatching(sequences().with(state("STATE__1", "NEXT__1", DataType.FP32))),
                ErrorCode.INVALID_ARGUMENT,
                "PyTorch model 'm' is using sequence batching with state but not all inputs and outputs follow the"
                        + " <name>__<index> naming convention. ");
    }

    @ParameterizedTest
    @CsvSource({"STATE, NEXT__1, STATE", "STATE__1, NEXT, NEXT"})
    void stateWithoutIndex(String input, String output, String shown) {
        isRefused(
                TWO,
                one("INPUT__0", "OUTPUT__0").sequenceBatching(sequences().with(state(input, output, DataType.FP32))),
                ErrorCode.INVALID_ARGUMENT,
                "PyTorch model 'm' is using sequence batching with state but state '" + shown
                        + "' does not follow the <name>__<index> naming convention. ");
    }

    @Test
    void inputsByName() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = two("b", "a");

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("b", Tensor.ofFloats(Shape.of(1), 1), "a", Tensor.ofFloats(Shape.of(1), 5)));

        assertThat(outputs.get("OUTPUT__1").floats()).containsExactly(4);
        assertThat(warnings()).isEmpty();
    }

    @Test
    void inputsByIndex() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = two("X__1", "a__"); // no digits are 0

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("X__1", Tensor.ofFloats(Shape.of(1), 1), "a__", Tensor.ofFloats(Shape.of(1), 5)));

        assertThat(outputs.get("OUTPUT__1").floats()).containsExactly(4);
        assertThat(warnings()).isEmpty();
    }

    @Test
    void inputsByOrder() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = two("b", "INPUT__0");

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("b", Tensor.ofFloats(Shape.of(1), 5), "INPUT__0", Tensor.ofFloats(Shape.of(1), 1)));

        assertThat(outputs.get("OUTPUT__1").floats()).containsExactly(4);
        assertThat(warnings())
                .containsExactly("WARNING input 'b' or previous input(s) are neither an input argument to the model 'm'"
                        + " nor do they follow the <name>__<index> naming convention. Falling back to enforcing strict"
                        + " ordering from model configuration. The model's names: a, b");
    }

    @Test
    void inputsByOrderWithTwoUnderscores() {
        ScriptFiles.write(directory, TWO);

        test.load(two("a__b__0", "a__b__1"));

        assertThat(warnings())
                .singleElement()
                .asString()
                .startsWith("WARNING input 'a__b__0' or previous input(s) are neither ");
    }

    @ParameterizedTest
    @CsvSource({"a__0, b__0", "a__1, b__01"})
    void sameIndexTwice(String first, String second) {
        isRefused(
                TWO,
                two(first, second),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input '" + second + "': the same argument as input '" + first
                        + "' (expected: one input for each); forward(Tensor a, Tensor b) -> (Tensor, Tensor)");
    }

    @ParameterizedTest
    @CsvSource({"2, 2", "000000000002, 2", "2147483648, 2147483647", "99999999999999999999, 2147483647"})
    void indexTooHigh(String given, String shown) {
        isRefused(
                TWO,
                two("a__0", "b__" + given),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'b__" + given + "': index " + shown
                        + " (expected: below 2); forward(Tensor a, Tensor b) -> (Tensor, Tensor)");
    }

    @Test
    void controlWithTheIndexOfAnInput() {
        isRefused(
                TWO,
                one("INPUT__0", "OUTPUT__0").sequenceBatching(sequences().with(start("START__0"))),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', input 'START__0': the same argument as input 'INPUT__0' (expected: one input"
                        + " for each); forward(Tensor a, Tensor b) -> (Tensor, Tensor)");
    }

    @ParameterizedTest
    @CsvSource({"a, b", "INPUT__0, N__1", "INPUT, N"})
    void batchInputByEachRule(String input, String derived) {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = one(input, "OUTPUT__1")
                .batchInput(new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of(derived), DataType.FP32, input));

        Map<String, Tensor> outputs = test.run(settings, 1, Map.of(input, Tensor.ofFloats(Shape.of(1), 5)));

        assertThat(outputs.get("OUTPUT__1").floats()).containsExactly(4);
    }

    @Test
    void batchInputThatTheRuleDoesNotFit() {
        BatchInput other = new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("N"), DataType.FP32, "a");
        isRefused(
                TWO,
                one("a", "OUTPUT__0").batchInput(other),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', batch input 'N' (expected: an argument, as the inputs are: a, b)");
        isRefused(
                TWO,
                one("a__0", "OUTPUT__0").batchInput(other),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', batch input 'N' (expected: a name <name>__<index>, as the inputs have it)");
    }

    @Test
    void outputsByOrder() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = settings()
                .input(floats("a"))
                .input(floats("b"))
                .output(floats("sum"))
                .output(floats("difference"));

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("a", Tensor.ofFloats(Shape.of(1), 5), "b", Tensor.ofFloats(Shape.of(1), 1)));

        assertThat(outputs.get("difference").floats()).containsExactly(4);
        assertThat(warnings())
                .containsExactly("WARNING output 'sum' or previous output(s) of the model 'm' do not follow the"
                        + " <name>__<index> naming convention. Falling back to enforcing strict ordering from model"
                        + " configuration.");
    }

    @Test
    void outputsByIndexWithASurplus() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings =
                settings().input(floats("a")).input(floats("b")).output(floats("OUT__1"));

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("a", Tensor.ofFloats(Shape.of(1), 5), "b", Tensor.ofFloats(Shape.of(1), 1)));

        assertThat(outputs.get("OUT__1").floats()).containsExactly(4);
    }

    @Test
    void outputsOfTheSameValue() {
        ScriptFiles.write(directory, TWO);
        ModelSettingsBuilder settings = settings()
                .input(floats("a"))
                .input(floats("b"))
                .output(floats("first__1"))
                .output(floats("second__1"));

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("a", Tensor.ofFloats(Shape.of(1), 5), "b", Tensor.ofFloats(Shape.of(1), 1)));

        assertThat(outputs.get("first__1").floats()).containsExactly(4);
        assertThat(outputs.get("second__1").floats()).containsExactly(4);
    }

    @Test
    void keyThatTheResultLacks() {
        ScriptFiles.write(directory, DICTIONARY);
        ModelSettingsBuilder settings =
                settings().input(floats("b")).input(floats("a")).output(floats("difference"));
        Map<String, Tensor> inputs = Map.of("a", Tensor.ofFloats(Shape.of(1), 5), "b", Tensor.ofFloats(Shape.of(1), 1));

        BackendException failure = catchThrowableOfType(BackendException.class, () -> test.run(settings, 1, inputs));

        assertThat(failure)
                .hasMessage("output 'difference' is not found in the dictionary of the result (expected: one of a,"
                        + " sum)");
        assertThat(failure.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void keyThatTheScriptMisses() {
        ScriptFiles.write(directory, DICTIONARY);
        ModelSettingsBuilder settings = settings().input(floats("a")).output(floats("sum"));

        assertThat(catchThrowableOfType(
                        BackendException.class,
                        () -> test.run(settings, 1, Map.of("a", Tensor.ofFloats(Shape.of(1), 5)))))
                .message()
                .startsWith("PyTorch execute failure: ")
                .contains("x['b']");
    }

    @Test
    void outputsByKey() {
        ScriptFiles.write(directory, DICTIONARY);
        ModelSettingsBuilder settings = settings()
                .input(floats("b"))
                .input(floats("a"))
                .output(floats("sum"))
                .output(floats("a"));

        Map<String, Tensor> outputs = test.run(
                settings, 1, Map.of("a", Tensor.ofFloats(Shape.of(1), 5), "b", Tensor.ofFloats(Shape.of(1), 1)));

        assertThat(outputs.get("sum").floats()).containsExactly(6);
        assertThat(outputs.get("a").floats()).containsExactly(5);
        assertThat(warnings()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"OUTPUT__2", "OUTPUT__99999999999"})
    void outputIndexTooHigh(String name) {
        isRefused(
                TWO,
                settings().input(floats("a")).input(floats("b")).output(floats(name)),
                ErrorCode.INVALID_ARGUMENT,
                "The output " + name + " in the model configuration refers to an output index which doesn't exist. This"
                        + " model has 2 outputs");
    }

    @Test
    void moreOutputsThanValues() {
        isRefused(
                ONE,
                settings().input(floats("x")).output(floats("first")).output(floats("second")),
                ErrorCode.INVALID_ARGUMENT,
                "The output second in the model configuration refers to an output index which doesn't exist. This model"
                        + " has 1 outputs");
    }

    @Test
    void stateIndexTooHigh() {
        isRefused(
                TWO,
                one("INPUT__0", "OUTPUT__0").sequenceBatching(sequences().with(state("S__1", "S__5", DataType.FP32))),
                ErrorCode.INVALID_ARGUMENT,
                "The output S__5 in the model configuration refers to an output index which doesn't exist. This model"
                        + " has 2 outputs");
    }

    @Test
    void outputOfTextForATensorAndTheReverse() {
        isRefused(
                ONE,
                settings().input(floats("x")).output(TensorSpec.of("OUTPUT__0", DataType.BYTES, OPEN)),
                ErrorCode.INVALID_ARGUMENT,
                "configuration expects datatype TYPE_STRING for output 'OUTPUT__0', model provides a tensor");
        isRefused(
                TEXT,
                settings().input(TensorSpec.of("x", DataType.BYTES, OPEN)).output(floats("OUTPUT__0")),
                ErrorCode.INVALID_ARGUMENT,
                "configuration expects datatype TYPE_FP32 for output 'OUTPUT__0', model provides TYPE_STRING");
    }

    @Test
    void outputTypeThatTheExecutionShows() {
        ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x.int()\n");

        assertThat(catchThrowableOfType(
                        BackendException.class,
                        () -> test.run(one("x", "OUTPUT__0"), 1, Map.of("x", Tensor.ofFloats(Shape.of(1), 1)))))
                .hasMessage("configuration expects datatype TYPE_FP32 for output 'OUTPUT__0', model provides"
                        + " TYPE_INT32");
    }

    @Test
    void otherRuntimes() {
        ScriptFiles.write(directory, ONE);

        assertThat(test.refusal(one("x", "OUTPUT__0").json("{\"platform\": \"torch_aoti\"}")))
                .hasMessage(
                        "unable to load model 'm', platform: 'torch_aoti': packages of AOT Inductor are not executed"
                                + " (expected: TorchScript in model.pt; or a model.py of the backend python)");
        assertThat(test.refusal(one("x", "OUTPUT__0").json("{\"runtime\": \"model.py\"}")))
                .hasMessage("unable to load model 'm', runtime: 'model.py': models of this backend are executed by"
                        + " PyTorch itself (expected: TorchScript in model.pt; or a model.py of the backend python)");
        test.load(one("x", "OUTPUT__0").json("{\"platform\": \"pytorch_libtorch\"}"));
    }

    @Test
    void instancesOnAGpu() {
        ScriptFiles.write(directory, ONE);
        BackendException refusal = catchThrowableOfType(
                BackendException.class,
                () -> test.load(one("x", "OUTPUT__0"), List.of(Device.CPU, new Device(Device.Kind.GPU, 0))));

        assertThat(refusal)
                .hasMessage("unable to load model 'm', instance_group: KIND_GPU (expected: KIND_CPU, since this PyTorch"
                        + " computes on the CPU)");
        assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @ParameterizedTest
    @CsvSource({
        "torchvision, 'is not part of PyTorch, but of torchvision, whose operators are not there'",
        "mine, 'is not part of PyTorch'"
    })
    void missingOperator(String namespace, String text) throws IOException {
        Path file = ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return torch.relu(x)\n");
        Map<String, byte[]> records = ScriptFiles.records(file);
        records.replaceAll((name, content) -> name.endsWith(".py")
                ? new String(content, StandardCharsets.UTF_8)
                        .replace("torch.relu(x)", "ops." + namespace + ".nms(x)")
                        .getBytes(StandardCharsets.UTF_8)
                : content);
        ScriptFiles.write(file, records);

        BackendException refusal = test.refusal(one("x", "OUTPUT__0"));

        assertThat(refusal.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(refusal)
                .message()
                .startsWith("failed to load model 'm': ")
                .contains("Unknown builtin op: " + namespace + "::nms.")
                .contains("TorchScript.\nThe operator " + namespace + "::nms " + text)
                .contains(" with the backend onnxruntime)\n")
                .doesNotContain("frame #", "Exception raised from", directory.toString());
    }
}
