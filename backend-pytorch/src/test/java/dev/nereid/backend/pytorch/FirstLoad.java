package dev.nereid.backend.pytorch;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.bytedeco.pytorch.global.torch;

/**
 * A process whose first load is that of a trace with its inputs. Then it loads a script for each type, and writes a line of
 * the type and {@code same} or {@code different}.
 */
final class FirstLoad {
    private static final int ROUNDS = 3;
    private static final int ELEMENTS = 1001;
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    private FirstLoad() {}

    /**
     * Executes a trace, then a script of each type.
     *
     * @param arguments an empty directory
     */
    public static void main(String[] arguments) throws IOException {
        Path directory = Path.of(arguments[0]);
        ScriptFiles.library(); // before a tensor is made
        System.out.println("trace " + same(runsTrace(Files.createDirectory(directory.resolve("trace")))));
        for (DataType type : DataType.values()) {
            if (type != DataType.UINT16 && type != DataType.UINT32 && type != DataType.UINT64) {
                Path version = Files.createDirectory(directory.resolve(type.name()));
                System.out.println(type + " " + same(passes(version, type)));
            }
        }
    }

    private static String same(boolean isSame) {
        return isSame ? "same" : "different";
    }

    private static boolean runsTrace(Path directory) {
        ScriptFiles.trace(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n", torch.ones(2, 3));
        try (CheckedBackend backend = new CheckedBackend(directory)) {
            ModelCompletion completion =
                    backend.complete(ModelSettings.builder("m", 1)).orElseThrow();
            ModelSettingsBuilder settings = ModelSettings.builder("m", 1);
            completion.inputs().forEach(settings::input);
            completion.outputs().forEach(settings::output);
            Tensor output = backend.run(settings, 1, Map.of("x", Tensor.ofFloats(Shape.of(2, 3), 1, 2, 3, 4, 5, 6)))
                    .get("OUTPUT__0");
            return Arrays.equals(output.floats(), new float[] {2, 3, 4, 5, 6, 7});
        }
    }

    private static boolean passes(Path directory, DataType type) {
        boolean isText = type == DataType.BYTES;
        ScriptFiles.write(
                directory,
                isText
                        ? "def forward(self, x: List[str]) -> List[str]:\n    return [t + '' for t in x]\n"
                        : "def forward(self, x: Tensor) -> Tensor:\n    return x.clone()\n");
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", type, OPEN))
                .output(TensorSpec.of("OUTPUT__0", type, OPEN));
        boolean isSame = true;
        try (TestBackend backend = new TestBackend(directory);
                CheckedBackend checked = new CheckedBackend(directory)) {
            var instance = checked.instance(checked.load(settings));
            for (int round = 0; round < ROUNDS; round++) {
                Tensor input = isText
                        ? Tensor.ofStrings(Shape.of(3), List.of("", "ä" + round, "a longer text that lies outside"))
                        : backend.tensor(type, Shape.of(ELEMENTS), random(type, round), 0);
                Tensor output =
                        checked.run(instance, settings, 1, Map.of("x", input)).get("OUTPUT__0");
                isSame &= output.type() == type
                        && output.shape().equals(input.shape())
                        && Arrays.equals(TestBackend.bytes(output), TestBackend.bytes(input));
            }
        }
        return isSame;
    }

    private static byte[] random(DataType type, long seed) {
        byte[] content = new byte[ELEMENTS * type.byteSize()];
        new Random(seed).nextBytes(content);
        for (int i = 0; i < content.length && type == DataType.BOOL; i++) {
            content[i] &= 1;
        }
        return content;
    }
}
