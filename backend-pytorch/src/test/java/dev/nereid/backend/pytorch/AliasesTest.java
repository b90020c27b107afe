package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Outputs that lie in inputs, in the module or in one another; scripts that change what they are given. */
class AliasesTest {
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

    private static String returning(String expression) {
        return "def forward(self, a: Tensor):\n    return " + expression;
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "a; 2x3; 1 2 3 4 5 6",
                "a[1:]; 1x3; 4 5 6",
                "a[:, 1:]; 2x2; 2 3 5 6",
                "a[:, ::2]; 2x2; 1 3 4 6",
                "a.t(); 3x2; 1 4 2 5 3 6",
                "a.flip([1]); 2x3; 3 2 1 6 5 4",
                "a[:1].expand([3, 3]); 3x3; 1 2 3 1 2 3 1 2 3",
                "a.unsqueeze(0).expand([2, 2, 3]); 2x2x3; 1 2 3 4 5 6 1 2 3 4 5 6",
                "a.view([3, 2]); 3x2; 1 2 3 4 5 6",
                "a.as_strided([2, 2], [1, 1]); 2x2; 1 2 2 3",
                "a.diagonal(); 2; 1 5",
                "a.contiguous(); 2x3; 1 2 3 4 5 6",
                "a[1, 2]; 1; 6"
            })
    void returnsViewsOfInputs(String expression, String dims, String expected) {
        long[] sizes = java.util.Arrays.stream(dims.split("x"))
                .mapToLong(Long::parseLong)
                .toArray();
        TestBackend.Served served =
                test.serve(returning(expression), TestBackend.one(DataType.FP32, Shape.of(2, 3), Shape.of(sizes)));
        Tensor a = test.floats(Shape.of(2, 3), 1, 2, 3, 4, 5, 6);
        for (int i = 0; i < 4; i++) {
            Tensor output = served.run(Map.of("a", a)).get("OUT__0");
            assertThat(output.shape()).isEqualTo(Shape.of(sizes));
            StringBuilder text = new StringBuilder();
            for (float number : output.floats()) {
                text.append(text.isEmpty() ? "" : " ").append((int) number);
            }
            assertThat(text.toString()).isEqualTo(expected);
        }
    }

    @Test
    void returnsOneTensorUnderSeveralNames() {
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1).input(TensorSpec.of("a", DataType.FP32, OPEN));
        for (int i = 0; i < 4; i++) {
            settings.output(TensorSpec.of("O__" + i, DataType.FP32, OPEN));
        }
        TestBackend.Served served =
                test.serve("def forward(self, a: Tensor):\n    b = a + 1\n    return b, b, a, b[1:]", settings);
        Map<String, Tensor> outputs = served.run(Map.of("a", test.floats(Shape.of(2), 1, 2)));
        assertThat(outputs.get("O__0").floats()).containsExactly(2, 3);
        assertThat(outputs.get("O__1").floats()).containsExactly(2, 3);
        assertThat(outputs.get("O__2").floats()).containsExactly(1, 2);
        assertThat(outputs.get("O__3").floats()).containsExactly(3);
    }

    @Test
    void readsOneValueForSeveralOutputs() {
        TestBackend.Served served = test.serve(
                returning("a + 1"),
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("a", DataType.FP32, OPEN))
                        .output(TensorSpec.of("X__0", DataType.FP32, OPEN))
                        .output(TensorSpec.of("Y__0", DataType.FP32, OPEN)));
        Map<String, Tensor> outputs = served.run(Map.of("a", test.floats(Shape.of(1), 1)));
        assertThat(outputs.get("X__0").floats()).containsExactly(2);
        assertThat(outputs.get("Y__0").floats()).containsExactly(2);
    }

    @Test
    void returnsParametersAndBuffers() {
        TestModels.Script script = TestModels.script("def forward(self, a: Tensor):\n    return self.w, self.b[1:], a")
                .parameter("w", new long[] {2}, 1, 2)
                .buffer("b", new long[] {3}, 4, 5, 6);
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", DataType.FP32, OPEN))
                .output(TensorSpec.of("O__0", DataType.FP32, OPEN))
                .output(TensorSpec.of("O__1", DataType.FP32, OPEN));
        TestBackend.Served served = test.serve(script, settings);
        for (int i = 0; i < 5; i++) {
            Map<String, Tensor> outputs = served.run(Map.of("a", test.floats(Shape.of(1), 1)));
            assertThat(outputs.get("O__0").floats()).containsExactly(1, 2);
            assertThat(outputs.get("O__1").floats()).containsExactly(5, 6);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a.add_(1)\n    return a",
                "b = a[1:]\n    b.mul_(0)\n    return a",
                "b = a.view([-1])\n    b[0] = 9\n    return b",
                "for i in range(2):\n        a += 1\n    return a",
                "if bool(a[0] > 0):\n        b = a\n    else:\n        b = a + 1\n    b.zero_()\n    return b",
                "l = [a, a + 1]\n    l[0].zero_()\n    return l[1]",
                "torch.relu_(torch.dropout(a, 0.5, False))\n    return a",
                "b = torch.atleast_1d(a)\n    b.zero_()\n    return b",
                "b = a.type_as(a)\n    b.zero_()\n    return b",
                "c = torch.broadcast_tensors([a, a])\n    c[0].zero_()\n    return a",
                "torch.add(a, 1, out=a)\n    return a",
                "a.resize_([1000])\n    a.fill_(3)\n    return a[:2]",
                "b = a.to(6)\n    b.zero_()\n    return b",
                "d = {'x': a}\n    d['x'].zero_()\n    return a",
                "b = torch.max(a, 0)[0]\n    b.zero_()\n    return a",
                "b, c = torch.split(a, 1)\n    b.zero_()\n    return a",
                "b = a.chunk(2)[1]\n    b.zero_()\n    return a",
                "b = torch.flatten(a)\n    b.zero_()\n    return a",
                "b = torch.nan_to_num_(a)\n    return b * 2",
                "b = torch.cartesian_prod([a])\n    b.zero_()\n    return b",
                "b = torch.conj_physical(a)\n    b.zero_()\n    return b",
                "b = a.resolve_neg()\n    b.zero_()\n    return b",
                "b = torch.meshgrid([a])[0]\n    b.zero_()\n    return b",
                "b = a.positive()\n    b.zero_()\n    return b",
                "b = a.expand_as(a)\n    b.zero_()\n    return b",
                "b = a.reshape([2])\n    b.zero_()\n    return b",
                "b = torch.index_fill(a, 0, torch.zeros([0], dtype=4), 0.)\n    b.zero_()\n    return b"
            })
    void leavesTheMemoryOfInputsAlone(String body) {
        TestBackend.Served served = test.serve("def forward(self, a: Tensor):\n    " + body, TestBackend.vector());
        Tensor a = test.floats(Shape.of(2), -1, 2);
        float[] first = served.run(a).floats();
        for (int i = 0; i < 4; i++) {
            assertThat(served.run(a).floats()).isEqualTo(first);
            assertThat(a.floats()).containsExactly(-1, 2);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "x = torch.dropout(self.b, 0.5, False)\n    x.add_(a)\n    return x.clone()",
                "x = self.b.type_as(a)\n    x.add_(a)\n    return x * 1",
                "x = torch.atleast_1d(self.b)\n    x.add_(a)\n    return x * 1",
                "x = torch.broadcast_tensors([self.b, a])[0]\n    x.add_(a)\n    return x * 1",
                "x = torch.conj_physical(self.b)\n    x.add_(a)\n    return x * 1",
                "x = torch.cartesian_prod([self.b])\n    x.add_(a)\n    return x * 1",
                "x = torch.meshgrid([self.b])[0]\n    x.add_(a)\n    return x * 1",
                "x = self.b.to(6)\n    x.add_(a)\n    return x * 1",
                "x = self.b\n    if bool(a[0] > 0):\n        x = torch.dropout(self.b, 0.5, False)\n    x.add_(a)\n"
                        + "    return x * 1",
                "x = torch.dropout(self.b, 0.5, False)\n    for i in range(int(a[0])):\n        x.add_(a)\n"
                        + "        x = torch.dropout(x, 0.5, False)\n    return x * 1",
                "x = [torch.dropout(self.b, 0.5, False)]\n    x[0].add_(a)\n    return x[0] * 1",
                "self.b.add_(a)\n    return self.b",
                "self.b += a\n    return self.b[:]",
                "self.b = self.b + a\n    return self.b"
            })
    void givesEachInstanceTheBuffersThatItChanges(String body) {
        TestModels.Script script =
                TestModels.script("def forward(self, a: Tensor):\n    " + body).buffer("b", new long[] {2}, 10, 20);
        ModelSettings settings = TestBackend.vector().build();
        var model = test.load(test.write(script), settings, 2);
        TestBackend.Served one = test.instance(model, settings);
        TestBackend.Served two = test.instance(model, settings);
        Tensor a = test.floats(Shape.of(2), 1, 1);
        for (int i = 1; i <= 5; i++) { // as if it ran alone
            assertThat(one.run(a).floats()).containsExactly(10 + i, 20 + i);
        }
        assertThat(two.run(a).floats()).containsExactly(11, 21);
        assertThat(one.run(a).floats()).containsExactly(16, 26);
    }

    @Test
    void keepsOutputsThatLieInABufferAsTheyWere() {
        TestModels.Script script = TestModels.script(
                        "def forward(self, a: Tensor):\n    self.b.add_(a)\n    return self.b")
                .buffer("b", new long[] {2}, 0, 0);
        TestBackend.Served served = test.serve(script, TestBackend.vector());
        FakeRequest first = served.request(1).with("a", test.floats(Shape.of(2), 1, 1));
        FakeRequest second = served.request(1).with("a", test.floats(Shape.of(2), 1, 1));
        try (FakeBatch earlier = served.batch(first);
                FakeBatch later = served.batch(second)) {
            served.instance.execute(earlier);
            served.instance.execute(later);
            assertThat(earlier.outputs().get("OUT__0").floats()).containsExactly(1, 1);
            assertThat(later.outputs().get("OUT__0").floats()).containsExactly(2, 2);
        }
    }

    /** The memory of the input is gone when the script reads it again. */
    @Test
    void letsAModuleKeepItsInput() {
        TestModels.Script script = TestModels.script(
                        "def forward(self, a: Tensor):\n    last = self.b\n    self.b = a\n    return last")
                .buffer("b", new long[] {2}, 7, 8);
        TestBackend.Served served = test.serve(script, TestBackend.vector());
        float[][] expected = {{7, 8}, {0, 1}, {1, 2}, {2, 3}};
        for (int i = 0; i < expected.length; i++) {
            Tensor a = test.floats(Shape.of(2), i, i + 1);
            assertThat(served.run(a).floats()).isEqualTo(expected[i]);
            a.data().fill((byte) 0x7F);
        }
    }
}
