package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.GenericList;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.InferenceMode;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.StringType;
import org.bytedeco.pytorch.Type;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Results have the bits of those of the presets, called directly with the file as it is. */
class PresetsTest {
    private static final int RUNS = 5;
    private static final int STEPS = 6;
    private static final int CELLS = 8;
    private static final Shape IMAGE = Shape.of(3, 224, 224);
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

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void computesAConvolutionWithNormalization(boolean inferenceMode) {
        float[] ones = {1, 1.5f, 0.5f, 2};
        compare(
                inferenceMode,
                TestModels.script("""
                        def forward(self, a: Tensor):
                            x = torch.conv2d(a, self.w, self.c, padding=1)
                            x = torch.batch_norm(x, self.g, self.s, self.m, self.v, False, 0.1, 1e-5, True)
                            x = torch.relu_(x)
                            return torch.linear(torch.flatten(x, 1), self.l)
                        """)
                        .weight("w", 4, 3, 3, 3)
                        .weight("c", 4)
                        .parameter("g", new long[] {4}, ones)
                        .weight("s", 4)
                        .buffer("m", new long[] {4}, 0.1f, -0.2f, 0.3f, 0)
                        .buffer("v", new long[] {4}, ones)
                        .weight("l", 10, 4 * 17 * 13),
                Shape.of(2, 3, 17, 13));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void computesALongShortTermMemory(boolean inferenceMode) {
        compare(
                inferenceMode,
                TestModels.script("""
                        def forward(self, a: Tensor):
                            h = torch.zeros([1, a.size(1), 8])
                            y = torch.lstm(a, [h, h], [self.wi, self.wh, self.bi, self.bh], True, 1, 0.0, False, False,
                                           False)
                            return torch.cat([y[0], y[1], y[2]])
                        """)
                        .weight("wi", 32, 5)
                        .weight("wh", 32, 8)
                        .weight("bi", 32)
                        .weight("bh", 32),
                Shape.of(7, 3, 5));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void computesEmbeddings(boolean inferenceMode) {
        compare(inferenceMode, TestModels.script("""
                        def forward(self, a: Tensor):
                            x = torch.embedding(self.e, (a.abs() * 100).to(4) % 50)
                            return torch.layer_norm(x, [16]).mean(1)
                        """).weight("e", 50, 16), Shape.of(4, 9));
    }

    private void compare(boolean inferenceMode, TestModels.Script script, Shape shape) {
        test.with("INFERENCE_MODE", Boolean.toString(inferenceMode));
        ModelSettingsBuilder settings = TestBackend.one(DataType.FP32, shape, OPEN);
        Path version = test.write(script);
        TestBackend.Served served = test.instance(test.load(version, settings.build(), 1), settings.build());
        float[] content = TestModels.numbers((int) shape.elementCount(), 3);
        try (Direct direct = new Direct(version, inferenceMode);
                IValue a = value(shape, content);
                IValue result = direct.call(a)) {
            for (int i = 0; i < RUNS; i++) {
                try (var batch = served.batch(served.request(1).with("a", test.floats(shape, content)))
                        .withWrongOutputs()) {
                    served.instance.execute(batch);
                    assertThat(batch.outputs().get("OUT__0").floats()).isEqualTo(floats(result));
                }
            }
        }
    }

    private Path network() throws IOException {
        Path version = Files.createDirectories(directory.resolve("resnet18").resolve("1"));
        try (NoGradGuard _ = new NoGradGuard()) {
            torch.manual_seed(1);
            MakeNetworks.resnet18(version.resolve("model.pt"));
        }
        return version;
    }

    @Tag("slow")
    @Test
    void computesAnImage() throws IOException {
        Path version = network();
        Shape shape = IMAGE.prepend(1);
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, shape))
                .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(1, 1000)))
                .build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        float[] content = TestModels.numbers((int) shape.elementCount(), 5);
        try (Direct direct = new Direct(version, true);
                IValue x = value(shape, content);
                IValue result = direct.call(x)) {
            Tensor image = test.floats(shape, content);
            for (int i = 0; i < RUNS; i++) {
                assertThat(served.run(Map.of("x", image)).get("OUT__0").floats())
                        .isEqualTo(floats(result));
            }
        }
    }

    @Tag("slow")
    @Test
    void computesABatchOfImages() throws IOException {
        Path version = network();
        ModelSettings settings = ModelSettings.builder("m", 1)
                .maxBatchSize(2)
                .input(TensorSpec.of("x", DataType.FP32, IMAGE))
                .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(1000)))
                .build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        int size = (int) IMAGE.elementCount();
        float[] content = TestModels.numbers(2 * size, 6);
        try (Direct direct = new Direct(version, true);
                IValue x = value(IMAGE.prepend(2), content);
                IValue result = direct.call(x)) {
            FakeRequest[] requests = new FakeRequest[2];
            for (int i = 0; i < requests.length; i++) {
                float[] image = Arrays.copyOfRange(content, i * size, (i + 1) * size);
                requests[i] = served.request(1).with("x", test.floats(IMAGE.prepend(1), image));
            }
            try (var batch = served.batch(requests)) {
                served.instance.execute(batch);
                assertThat(batch.outputs().get("OUT__0").shape()).isEqualTo(Shape.of(2, 1000));
                assertThat(batch.outputs().get("OUT__0").floats()).isEqualTo(floats(result));
            }
        }
    }

    /** Each step continues with the state that the one before has returned. */
    @Test
    void computesTheStepsOfALongShortTermMemory() {
        Path version = test.write(TestModels.script("""
                        def forward(self, x: Tensor, h: Tensor, c: Tensor):
                            y = torch.lstm(x.unsqueeze(0), [h.unsqueeze(0), c.unsqueeze(0)],
                                           [self.wi, self.wh, self.bi, self.bh], True, 1, 0.0, False, False, False)
                            return y[0].squeeze(0), y[1].squeeze(0), y[2].squeeze(0)
                        """)
                .weight("wi", 4 * CELLS, 5)
                .weight("wh", 4 * CELLS, CELLS)
                .weight("bi", 4 * CELLS)
                .weight("bh", 4 * CELLS));
        ModelSettings settings = ModelSettings.builder("m", 1)
                .maxBatchSize(2)
                .input(TensorSpec.of("x__0", DataType.FP32, Shape.of(5)))
                .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(CELLS)))
                .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(5))
                        .with(StateSpec.of("H__1", "NEXT_H__1", DataType.FP32, Shape.of(CELLS)))
                        .with(StateSpec.of("C__2", "NEXT_C__2", DataType.FP32, Shape.of(CELLS))))
                .build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        Shape state = Shape.of(1, CELLS);
        Tensor h = test.floats(state, new float[CELLS]);
        Tensor c = test.floats(state, new float[CELLS]);
        float[] directH = new float[CELLS];
        float[] directC = new float[CELLS];
        try (Direct direct = new Direct(version, true)) {
            for (int step = 0; step < STEPS; step++) {
                float[] content = TestModels.numbers(5, step);
                FakeRequest request = served.request(1)
                        .with("x__0", test.floats(Shape.of(1, 5), content))
                        .with("H__1", h)
                        .with("C__2", c)
                        .withState("NEXT_H__1", test.memory)
                        .withState("NEXT_C__2", test.memory);
                try (IValue x = value(Shape.of(1, 5), content);
                        IValue hValue = value(state, directH);
                        IValue cValue = value(state, directC);
                        IValue result = direct.call(x, hValue, cValue);
                        var batch = served.batch(request)) {
                    served.instance.execute(batch);
                    h = test.copy(batch.writtenState("NEXT_H__1").orElseThrow());
                    c = test.copy(batch.writtenState("NEXT_C__2").orElseThrow());
                    directH = floats(result.toTuple().elements().get(1));
                    directC = floats(result.toTuple().elements().get(2));
                    assertThat(batch.outputs().get("OUT__0").floats())
                            .isEqualTo(floats(result.toTuple().elements().get(0)));
                    assertThat(h.floats()).isEqualTo(directH);
                    assertThat(c.floats()).isEqualTo(directC);
                }
            }
        }
        assertThat(directC).doesNotContain(0);
    }

    @Test
    void computesWithTexts() {
        Path version = test.write(TestModels.script("""
                        def forward(self, a: List[str]) -> Tensor:
                            rows: List[Tensor] = []
                            for text in a:
                                ids = [0]
                                for i in range(len(text)):
                                    ids.append(1 + ord(text[i]) % 49)
                                rows.append(torch.embedding(self.e, torch.tensor(ids)).mean(0))
                            return torch.softmax(torch.linear(torch.stack(rows), self.l), 1)
                        """).weight("e", 50, 16).weight("l", 3, 16));
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", DataType.BYTES, OPEN))
                .output(TensorSpec.of("OUT__0", DataType.FP32, Shape.of(Shape.VARIABLE, 3)))
                .build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        List<String> texts = List.of("a text", "", "another one that is longer than the first", "z");
        try (Direct direct = new Direct(version, true);
                Type.TypePtr type = new Type.TypePtr(StringType.get().get());
                GenericList list = new GenericList(type)) {
            texts.forEach(text -> list.push_back(new IValue(text)));
            try (IValue a = new IValue(list);
                    IValue result = direct.call(a)) {
                for (int i = 0; i < RUNS; i++) {
                    Tensor input = Tensor.ofStrings(Shape.of(texts.size()), texts);
                    assertThat(served.run(Map.of("a", input)).get("OUT__0").floats())
                            .isEqualTo(floats(result));
                }
            }
        }
    }

    @Test
    void computesWithDictionaries() {
        Path version = test.write(TestModels.script("""
                        def forward(self, values: Dict[str, Tensor]) -> Dict[str, Tensor]:
                            product = torch.matmul(values['left'], self.w)
                            return {'mean': product.mean(1), 'product': torch.tanh(product) + values['right']}
                        """).weight("w", 7, 11));
        Shape left = Shape.of(3, 7);
        Shape right = Shape.of(3, 11);
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("right", DataType.FP32, right))
                .input(TensorSpec.of("left", DataType.FP32, left))
                .output(TensorSpec.of("product", DataType.FP32, right))
                .output(TensorSpec.of("mean", DataType.FP32, Shape.of(3)))
                .build();
        TestBackend.Served served = test.instance(test.load(version, settings, 1), settings);
        float[] leftContent = TestModels.numbers(21, 1);
        float[] rightContent = TestModels.numbers(33, 2);
        try (Direct direct = new Direct(version, true);
                CompilationUnit unit = torch.compile("""
                        def pack(left: Tensor, right: Tensor) -> Dict[str, Tensor]:
                            return {'left': left, 'right': right}
                        """);
                QualifiedName pack = new QualifiedName("pack");
                IValue leftValue = value(left, leftContent);
                IValue rightValue = value(right, rightContent);
                IValueVector both = new IValueVector(leftValue, rightValue);
                IValue values = unit.get_function(pack).apply(both);
                IValue result = direct.call(values)) {
            for (int i = 0; i < RUNS; i++) {
                Map<String, Tensor> outputs = served.run(
                        Map.of("left", test.floats(left, leftContent), "right", test.floats(right, rightContent)));
                for (String key : List.of("mean", "product")) {
                    try (IValue name = new IValue(key);
                            IValue expected = result.toGenericDict().at(name)) {
                        assertThat(outputs.get(key).floats()).as(key).isEqualTo(floats(expected));
                    }
                }
            }
        }
    }

    /** A file as the presets execute it, with as many threads as the backend has. */
    private static final class Direct implements AutoCloseable {
        private final JitModule module;
        private final boolean inferenceMode;

        Direct(Path version, boolean inferenceMode) {
            this.inferenceMode = inferenceMode;
            module = torch.load(version.resolve("model.pt").toString());
            module.eval();
        }

        IValue call(IValue... values) {
            torch.set_num_threads(TestBackend.PROCESSORS);
            try (AutoCloseable _ = inferenceMode ? new InferenceMode(true) : new NoGradGuard();
                    IValueVector arguments = new IValueVector(values)) {
                return module.forward(arguments);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        }

        @Override
        public void close() {
            module.close();
        }
    }

    private static IValue value(Shape shape, float... content) {
        try (org.bytedeco.pytorch.Tensor tensor = org.bytedeco.pytorch.Tensor.create(content, shape.toArray())) {
            return new IValue(tensor);
        }
    }

    private static float[] floats(IValue value) {
        try (org.bytedeco.pytorch.Tensor tensor = value.toTensor().contiguous()) {
            float[] numbers = new float[(int) tensor.numel()];
            new FloatPointer(tensor.data_ptr()).get(numbers);
            return numbers;
        }
    }
}
