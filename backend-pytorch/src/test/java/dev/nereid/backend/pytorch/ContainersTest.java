package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Dictionaries, tuples and lists, in and out. */
class ContainersTest {
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    @TempDir
    private Path directory;

    private TestBackend test;

    @BeforeEach
    void open() {
        test = new TestBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private static ModelSettingsBuilder outputs(DataType type, String... names) {
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1).input(TensorSpec.of("a", DataType.FP32, OPEN));
        for (String name : names) {
            settings.output(TensorSpec.of(name, type, OPEN));
        }
        return settings;
    }

    private Map<String, Tensor> run(TestBackend.Served served, float... a) {
        return served.run(Map.of("a", test.floats(Shape.of(a.length), a)));
    }

    private static String forward(String type, String expression) {
        return "def forward(self, a: Tensor) -> " + type + ":\n    return " + expression;
    }

    @Test
    void passesInputsAsADictionary() {
        TestBackend.Served served = test.serve(
                """
                def forward(self, x: Dict[str, Tensor]) -> Dict[str, Tensor]:
                    result: Dict[str, Tensor] = {}
                    for key in x.keys():
                        result[key + '_out'] = x[key] * len(x)
                    return result
                """,
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("left", DataType.FP32, OPEN))
                        .input(TensorSpec.of("right.1/ü😀", DataType.INT32, OPEN))
                        .output(TensorSpec.of("right.1/ü😀_out", DataType.INT32, OPEN))
                        .output(TensorSpec.of("left_out", DataType.FP32, OPEN)));

        Map<String, Tensor> outputs =
                served.run(Map.of("left", test.floats(Shape.of(2), 1, 2), "right.1/ü😀", test.ints(Shape.of(1), 7)));

        assertThat(outputs.get("left_out").floats()).containsExactly(2, 4);
        assertThat(outputs.get("right.1/ü😀_out").ints()).containsExactly(14);
    }

    @Test
    void passesManyEntries() {
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1);
        Map<String, Tensor> inputs = new java.util.HashMap<>();
        for (int i = 0; i < 300; i++) {
            settings.input(TensorSpec.of("k" + i, DataType.FP32, OPEN));
            settings.output(TensorSpec.of("k" + (299 - i), DataType.FP32, OPEN));
            inputs.put("k" + i, test.floats(Shape.of(1), i));
        }
        TestBackend.Served served =
                test.serve("def forward(self, x: Dict[str, Tensor]) -> Dict[str, Tensor]:\n    return x", settings);

        Map<String, Tensor> outputs = served.run(inputs);

        for (int i = 0; i < 300; i++) {
            assertThat(outputs.get("k" + i).floats()).containsExactly(i);
        }
    }

    @Test
    void namesTheKeysThereAre() {
        TestBackend.Served served =
                test.serve(forward("Dict[str, Tensor]", "{'x': a, 'y': a}"), outputs(DataType.FP32, "z"));
        assertThat(served.fails(Map.of("a", test.floats(Shape.of(1), 1))))
                .hasMessageContaining(
                        "output 'z' is not found in the dictionary of the result (expected: one of x, y)");
    }

    @Test
    void returnsIntegerKeysAsTexts() {
        TestBackend.Served served =
                test.serve(forward("Dict[int, Tensor]", "{7: a + 1, -3: a + 2}"), outputs(DataType.FP32, "7", "-3"));
        Map<String, Tensor> outputs = run(served, 0);
        assertThat(outputs.get("7").floats()).containsExactly(1);
        assertThat(outputs.get("-3").floats()).containsExactly(2);
    }

    @Test
    void flattensTuplesAndLists() {
        TestBackend.Served served = test.serve(
                forward("Tuple[Tensor, Tuple[Tensor, List[Tensor]], Tensor]", "a, (a + 1, [a + 2, a + 3]), a + 4"),
                outputs(DataType.FP32, "O__4", "O__3", "O__2", "O__1", "O__0"));
        Map<String, Tensor> outputs = run(served, 0);
        for (int i = 0; i < 5; i++) {
            assertThat(outputs.get("O__" + i).floats()).containsExactly(i);
        }
    }

    @Test
    void findsDictionariesInTuples() {
        TestBackend.Served served = test.serve(
                forward("Tuple[Tensor, Dict[str, Tensor], Tensor]", "a, {'x': a + 1, 'y': a + 2}, a + 3"),
                outputs(DataType.FP32, "first", "x", "y", "last"));
        Map<String, Tensor> outputs = run(served, 0);
        assertThat(outputs.get("first").floats()).containsExactly(0);
        assertThat(outputs.get("y").floats()).containsExactly(2);
        assertThat(outputs.get("last").floats()).containsExactly(3);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "List[int]; [3, -9223372036854775807]; INT64; 3.0 -9.223372036854775807E18",
                "List[float]; [0.5, 2.25]; FP64; 0.5 2.25",
                "List[bool]; [True, False, True]; BOOL; 1.0 0.0 1.0",
                "List[Tensor]; [a, a + 1]; FP32; 5.0",
                "List[List[int]]; [[1, 2], [3]]; INT64; 1.0 2.0",
                "List[Tuple[Tensor, int]]; [(a, 3)]; FP32; 5.0"
            })
    void returnsLists(String type, String expression, DataType output, String expected) {
        TestBackend.Served served = test.serve(forward(type, expression), outputs(output, "O__0"));
        Tensor value = run(served, 5).get("O__0");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < value.shape().elementCount(); i++) {
            double number = switch (output) {
                case INT64 -> value.longs()[i];
                case FP64 -> value.doubles()[i];
                case FP32 -> value.floats()[i];
                default -> TestBackend.bytes(value)[i];
            };
            text.append(i == 0 ? "" : " ").append(number);
        }
        assertThat(text.toString().replace("9.223372036854776E18", "9.223372036854775807E18"))
                .isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({"List[int],INT64", "List[float],FP64", "List[bool],BOOL", "List[str],BYTES"})
    void returnsEmptyLists(String type, DataType output) {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor) -> " + type + ":\n    r: " + type + " = []\n    return r",
                outputs(output, "O__0"));
        assertThat(run(served, 1).get("O__0").shape()).isEqualTo(Shape.of(0));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "List[Tensor]; []",
                "Dict[str, Tensor]; {}",
            })
    void refusesContainersWithoutValues(String type, String expression) {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor) -> " + type + ":\n    r: " + type + " = " + expression + "\n    return r",
                outputs(DataType.FP32, "O__0"));
        assertThat(served.fails(Map.of("a", test.floats(Shape.of(1), 1))))
                .hasMessageContaining("This model has 0 outputs");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "Optional[Tensor]; None; None",
                "Tuple[Optional[Tensor], Tensor]; (None, a); None",
                "Device; a.device; Device",
                "complex; complex(1, 2); Complex",
                "Any; None; None"
            })
    void refusesValuesThatNoClientCanReceive(String type, String expression, String named) {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor) -> " + type + ":\n    return " + expression,
                outputs(DataType.FP32, "O__0"));
        assertThat(served.fails(Map.of("a", test.floats(Shape.of(1), 1))))
                .hasMessageContaining("PyTorch execute failure: output 'O__0': Expected Tensor but got " + named);
    }

    @Test
    void returnsWhatStandsBesideNone() {
        TestBackend.Served served =
                test.serve(forward("Tuple[Optional[Tensor], Tensor]", "None, a + 1"), outputs(DataType.FP32, "O__1"));
        assertThat(run(served, 1).get("O__1").floats()).containsExactly(2);
    }

    @Test
    void passesATensorAsListOfOne() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: List[Tensor]) -> Tensor:\n    return a[0] + len(a)", TestBackend.vector());
        assertThat(served.run(test.floats(Shape.of(2), 1, 2)).floats()).containsExactly(2, 3);
    }

    @Test
    void returnsTheFieldsOfNamedTuples() throws IOException {
        TestModels.Script script = TestModels.script("def forward(self, a: Tensor):\n    return a");
        Path version = test.write(script);
        TestModels.replaceCode(version.resolve("model.pt"), """
                class Pair(NamedTuple):
                  first : Tensor
                  second : Tensor
                class M(Module):
                  __parameters__ = []
                  __buffers__ = []
                  training : bool
                  def forward(self: __torch__.M,
                    a: Tensor) -> __torch__.Pair:
                    return __torch__.Pair(torch.add(a, 1), torch.add(a, 2))
                """);
        ModelSettings settings = outputs(DataType.FP32, "O__0", "O__1").build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        Map<String, Tensor> outputs = run(served, 0);
        assertThat(outputs.get("O__0").floats()).containsExactly(1);
        assertThat(outputs.get("O__1").floats()).containsExactly(2);
    }

    @Test
    void refusesObjectsOfClasses() throws IOException {
        Path version = test.write(TestModels.script("def forward(self, a: Tensor):\n    return a"));
        TestModels.replaceCode(version.resolve("model.pt"), """
                class Box:
                  x : Tensor
                  def __init__(self: __torch__.Box,
                    x: Tensor) -> NoneType:
                    self.x = x
                    return None
                class M(Module):
                  __parameters__ = []
                  __buffers__ = []
                  training : bool
                  def forward(self: __torch__.M,
                    a: Tensor) -> __torch__.Box:
                    return __torch__.Box(a)
                """);
        ModelSettings settings = outputs(DataType.FP32, "O__0").build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        assertThat(served.fails(Map.of("a", test.floats(Shape.of(1), 1))))
                .hasMessageContaining("Expected Tensor but got Object");
    }

    @Test
    void returnsTextsOfDictionaries() {
        TestBackend.Served served =
                test.serve(forward("Dict[str, List[str]]", "{'x': ['p', 'q']}"), outputs(DataType.BYTES, "x"));
        assertThat(run(served, 1).get("x").strings()).isEqualTo(List.of("p", "q"));
    }
}
