package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Modules that instances share, that are not frozen, or that are in the mode of training. */
class SharingTest {
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

    private static TestModels.Script counter() {
        return TestModels.script("def forward(self, a: Tensor):\n    self.b.add_(1)\n    return a + self.b")
                .buffer("b", new long[] {1}, 0);
    }

    @Test
    void sharesAModuleThatChangesWhereThatIsWanted() {
        test.with("ENABLE_WEIGHT_SHARING", "true");
        ModelSettings settings = TestBackend.vector().build();
        Model model = test.load(test.write(counter()), settings, 2);
        TestBackend.Served one = test.instance(model, settings);
        TestBackend.Served two = test.instance(model, settings);
        Tensor a = test.floats(Shape.of(1), 0);
        assertThat(one.run(a).floats()).containsExactly(1);
        assertThat(two.run(a).floats()).containsExactly(2);
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(4);
        assertThat(test.log())
                .anyMatch(line -> line.contains("Reusing TorchScript model for instance 'm'"))
                .anyMatch(line -> line.startsWith("WARNING") && line.contains("ENABLE_WEIGHT_SHARING"));
    }

    @ParameterizedTest
    @CsvSource({"true,true", "true,false", "false,true", "false,false"})
    void computesTheSameInEachMode(boolean inference, boolean disabled) {
        test.with("INFERENCE_MODE", Boolean.toString(inference))
                .with("DISABLE_OPTIMIZED_EXECUTION", Boolean.toString(disabled));
        ModelSettings settings = TestBackend.vector().build();
        Model model = test.load(test.write(counter()), settings, 2);
        TestBackend.Served one = test.instance(model, settings);
        TestBackend.Served two = test.instance(model, settings);
        Tensor a = test.floats(Shape.of(2), 1, 2);
        for (int i = 1; i < 4; i++) {
            assertThat(one.run(a).floats()).containsExactly(1 + i, 2 + i);
        }
        assertThat(two.run(a).floats()).containsExactly(2, 3);
    }

    @Test
    void leavesAModuleInTheModeOfTraining() {
        TestModels.Script script =
                TestModels.script("""
                        def forward(self, a: Tensor):
                            if self.training:
                                self.b.add_(1)
                            return a + self.b
                        """).buffer("b", new long[] {1}, 0).training();
        ModelSettings settings = TestBackend.vector().build();
        Model model = test.load(test.write(script), settings, 2);
        TestBackend.Served one = test.instance(model, settings);
        TestBackend.Served two = test.instance(model, settings);
        Tensor a = test.floats(Shape.of(1), 0);
        assertThat(one.run(a).floats()).containsExactly(1);
        assertThat(one.run(a).floats()).containsExactly(2);
        assertThat(two.run(a).floats()).containsExactly(1);
    }

    /** The schema of this operation does not say that it changes the mean and the variance. */
    @Test
    void givesEachInstanceItsOwnStatistics() {
        TestModels.Script script =
                TestModels.script("""
                        def forward(self, a: Tensor):
                            y = torch.native_batch_norm(a, None, None, self.m, self.v, True, 0.1, 1e-5)
                            return self.m + y[0].sum() * 0
                        """).buffer("m", new long[] {1}, 0).buffer("v", new long[] {1}, 1);
        ModelSettings settings = TestBackend.one(DataType.FP32, Shape.of(-1, 1), Shape.of(Shape.VARIABLE))
                .build();
        Model model = test.load(test.write(script), settings, 2);
        TestBackend.Served one = test.instance(model, settings);
        TestBackend.Served two = test.instance(model, settings);
        Tensor a = test.floats(Shape.of(2, 1), 9, 11); // their mean is 10, of which a tenth is added
        float first = mean(one, a);
        float second = mean(one, a);
        assertThat(first).isCloseTo(1, within(1e-4f));
        assertThat(second).isCloseTo(1.9f, within(1e-4f));
        assertThat(mean(two, a)).isEqualTo(first);
        assertThat(mean(one, a)).isGreaterThan(second);
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(2 * 8);
    }

    private static float mean(TestBackend.Served served, Tensor a) {
        return served.run(1, Map.of("a", a)).get("OUT__0").floats()[0];
    }

    @Test
    void givesAnInstanceThatIsAddedAFreshModule() {
        ModelSettings settings = TestBackend.vector().build();
        Model model = test.load(test.write(counter()), settings, 1);
        Tensor a = test.floats(Shape.of(1), 0);
        assertThat(test.instance(model, settings).run(a).floats()).containsExactly(1);
        assertThat(test.instance(model, settings).run(a).floats()).containsExactly(1);
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(8);
    }

    @Test
    void countsNoModuleThatCannotBeLoaded() throws IOException {
        ModelSettings settings = TestBackend.vector().build();
        Path version = test.write(counter());
        Model model = test.load(version, settings, 2);
        test.instance(model, settings);
        Files.delete(version.resolve("model.pt"));
        assertThatThrownBy(() -> test.instance(model, settings)).isInstanceOf(BackendException.class);
        assertThat(model.memoryUsage().getFirst().byteSize()).isEqualTo(4);
    }
}
