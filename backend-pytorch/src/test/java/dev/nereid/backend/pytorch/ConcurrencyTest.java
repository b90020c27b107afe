package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Eight threads execute one model with different shapes; each result is the one that a thread alone gets. */
@Timeout(120)
class ConcurrencyTest {
    private static final int THREADS = 8;
    private static final int ROUNDS = 200;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"", "self.b.add_(0)\n    "})
    void computesTheSameOnEightThreads(String change) throws Exception {
        TestModels.Script script = TestModels.script("def forward(self, a: Tensor):\n    " + change
                        + "return torch.relu(a @ self.w) + torch.softmax(a, 1)")
                .weight("w", 16, 16)
                .buffer("b", new long[] {1}, 0);
        ModelSettings settings = TestBackend.one(DataType.FP32, Shape.of(-1, 16), Shape.of(-1, 16))
                .build();
        try (TestBackend test = new TestBackend(directory);
                ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            Model model = test.load(test.write(script), settings, THREADS);
            List<Callable<Void>> work = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                TestBackend.Served served = test.instance(model, settings);
                Tensor a = test.floats(Shape.of(1 + i * 7, 16), TestModels.numbers((1 + i * 7) * 16, i));
                float[] expected = served.run(Map.of("a", a)).get("OUT__0").floats(); // no other thread executes yet
                work.add(() -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        assertThat(served.run(Map.of("a", a)).get("OUT__0").floats())
                                .isEqualTo(expected);
                    }
                    return null;
                });
            }
            for (Future<Void> done : threads.invokeAll(work)) {
                done.get();
            }
        }
    }

    @Test
    void passesTextsOnEightThreads() throws Exception {
        ModelSettings settings =
                TestBackend.one(DataType.BYTES, Shape.of(-1), Shape.of(-1)).build();
        try (TestBackend test = new TestBackend(directory);
                ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            Model model = test.load(
                    test.write(TestModels.script("def forward(self, a: List[str]) -> List[str]:\n    return a + ['']")),
                    settings,
                    THREADS);
            List<Callable<Void>> work = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                TestBackend.Served served = test.instance(model, settings);
                String text = "text".repeat(i * 3);
                work.add(() -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        assertThat(served.run(Map.of("a", Tensor.ofStrings(Shape.of(2), List.of(text, "x"))))
                                        .get("OUT__0")
                                        .strings())
                                .containsExactly(text, "x", "");
                    }
                    return null;
                });
            }
            for (Future<Void> done : threads.invokeAll(work)) {
                done.get();
            }
        }
    }
}
