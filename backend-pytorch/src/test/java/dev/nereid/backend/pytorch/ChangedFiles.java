package dev.nereid.backend.pytorch;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.global.torch;

/** A process that loads files with random changes, of which some may end it. */
final class ChangedFiles {
    private static final int MAX_CHANGES = 4;
    private static final int MAX_LENGTH = 64;
    private static final Shape FOUR = Shape.of(4);

    private ChangedFiles() {}

    /**
     * Loads changed files, and writes a line before and after each.
     *
     * @param arguments the directory, the first number, and the number behind the last one; odd ones have right checksums
     */
    public static void main(String[] arguments) throws IOException {
        Path directory = Path.of(arguments[0]);
        byte[] whole = Files.readAllBytes(write(directory));
        Map<String, byte[]> records = ScriptFiles.records(directory.resolve(ScriptFiles.FILE));
        for (int seed = Integer.parseInt(arguments[1]); seed < Integer.parseInt(arguments[2]); seed++) {
            Random random = new Random(seed);
            byte[] content;
            String what;
            if (seed % 2 == 0) {
                what = "bytes";
                content = changed(whole, random);
            } else {
                Map<String, byte[]> other = new LinkedHashMap<>(records);
                List<String> names = new ArrayList<>(records.keySet());
                what = names.get(random.nextInt(names.size()));
                other.compute(what, (name, bytes) -> changed(bytes, random));
                content = ScriptFiles.zip(other);
            }
            System.out.println(seed + " " + what);
            Files.write(directory.resolve(ScriptFiles.FILE), content);
            System.out.println(seed + " " + load(directory));
        }
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, FOUR));
    }

    private static Path write(Path directory) {
        return ScriptFiles.write(
                directory,
                """
                def forward(self, x: Tensor) -> Tensor:
                    for name in ["first", "second"]:
                        if len(name) > 5:
                            x = torch.matmul(self.weight, x) + self.bias
                    return torch.relu(x) * torch.tensor([1.0, 2.0, 3.0, 4.0])
                """,
                module -> {
                    module.register_buffer("weight", torch.ones(4, 4));
                    module.register_buffer("bias", torch.ones(4));
                },
                module -> {
                    try (IValueVector inputs = new IValueVector()) {
                        inputs.resize(1);
                        inputs.put(0, new IValue(torch.ones(4)));
                        module.store_traced_inputs("forward", inputs);
                    }
                });
    }

    private static String load(Path directory) {
        try (CheckedBackend test = new CheckedBackend(directory)) {
            test.run(settings(), 1, Map.of("x", Tensor.ofFloats(FOUR, 1, 2, 3, 4)));
            return "executed";
        } catch (BackendException e) {
            return "refused " + e.code() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
        }
    }

    private static byte[] changed(byte[] given, Random random) {
        byte[] bytes = given.clone();
        for (int i = random.nextInt(MAX_CHANGES); i >= 0 && bytes.length > 0; i--) {
            int at = random.nextInt(bytes.length);
            int length = 1 + random.nextInt(Math.min(MAX_LENGTH, bytes.length - at));
            switch (random.nextInt(6)) {
                case 0 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
                case 1 -> bytes[at] = (byte) random.nextInt();
                case 2 -> bytes[at] = (byte) (random.nextBoolean() ? 0xFF : 0);
                case 3 -> { // removed
                    byte[] rest = Arrays.copyOf(bytes, bytes.length - length);
                    System.arraycopy(bytes, at + length, rest, at, bytes.length - at - length);
                    bytes = rest;
                }
                case 4 -> { // twice
                    byte[] more = Arrays.copyOf(bytes, bytes.length + length);
                    System.arraycopy(bytes, at, more, at + length, bytes.length - at);
                    bytes = more;
                }
                default -> {
                    byte[] noise = new byte[length];
                    random.nextBytes(noise);
                    System.arraycopy(noise, 0, bytes, at, length);
                }
            }
        }
        return bytes;
    }
}
