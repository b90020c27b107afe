package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.nio.file.Path;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.InferenceMode;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Results have the bits of those of the presets, called directly with the file as it is. */
class PresetsTest {
    @TempDir
    private Path directory;

    @Test
    void computesAConvolutionWithNormalization() {
        float[] ones = {1, 1.5f, 0.5f, 2};
        compare(
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

    @Test
    void computesALongShortTermMemory() {
        compare(
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

    @Test
    void computesEmbeddings() {
        compare(TestModels.script("""
                        def forward(self, a: Tensor):
                            x = torch.embedding(self.e, (a.abs() * 100).to(4) % 50)
                            return torch.layer_norm(x, [16]).mean(1)
                        """).weight("e", 50, 16), Shape.of(4, 9));
    }

    private void compare(TestModels.Script script, Shape shape) {
        try (TestBackend test = new TestBackend(directory)) {
            ModelSettingsBuilder settings = TestBackend.one(DataType.FP32, shape, Shape.of(Shape.VARIABLE));
            Path version = test.write(script);
            TestBackend.Served served = test.instance(test.load(version, settings.build(), 1), settings.build());
            float[] content = TestModels.numbers((int) shape.elementCount(), 3);
            Tensor a = test.floats(shape, content);
            float[] expected = direct(version.resolve("model.pt"), shape, content);
            for (int i = 0; i < 5; i++) {
                try (var batch = served.batch(served.request(1).with("a", a)).withWrongOutputs()) {
                    served.instance.execute(batch);
                    float[] output = batch.outputs().get("OUT__0").floats();
                    assertThat(output).isEqualTo(expected);
                }
            }
        }
    }

    private static float[] direct(Path file, Shape shape, float[] content) {
        try (InferenceMode _ = new InferenceMode(true);
                JitModule module = torch.load(file.toString());
                org.bytedeco.pytorch.Tensor a = org.bytedeco.pytorch.Tensor.create(content, shape.toArray());
                IValue value = new IValue(a);
                IValueVector arguments = new IValueVector()) {
            module.eval();
            arguments.resize(1);
            arguments.put(0, value);
            try (IValue result = module.forward(arguments);
                    org.bytedeco.pytorch.Tensor output = result.toTensor().contiguous()) {
                float[] numbers = new float[(int) output.numel()];
                new FloatPointer(output.data_ptr()).get(numbers);
                return numbers;
            }
        }
    }
}
