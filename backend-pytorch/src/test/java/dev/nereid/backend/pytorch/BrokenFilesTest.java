package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files that cannot be served: one reason each, at the load, while another model serves on. */
@Timeout(120)
class BrokenFilesTest {
    private static final Shape ONE = Shape.of(1);

    @TempDir
    private Path directory;

    @TempDir
    private Path healthy;

    private Path file;
    private CheckedBackend other;
    private CheckedBackend test;
    private ModelInstance instance;

    @BeforeEach
    void open() {
        ScriptFiles.write(healthy, "def forward(self, x: Tensor) -> Tensor:\n    return x + 1\n");
        file = ScriptFiles.write(
                directory,
                "def forward(self, x: Tensor) -> Tensor:\n    return x + self.w\n",
                module -> module.register_buffer("w", torch.ones(1)));
        other = new CheckedBackend(healthy);
        instance = other.instance(other.load(settings()));
        test = new CheckedBackend(directory);
    }

    @AfterEach
    void close() {
        assertThat(other.run(instance, settings(), 1, Map.of("x", Tensor.ofFloats(ONE, 1)))
                        .get("OUTPUT__0")
                        .floats())
                .containsExactly(2);
        other.close();
        test.close();
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("x", DataType.FP32, ONE))
                .output(TensorSpec.of("OUTPUT__0", DataType.FP32, ONE));
    }

    private void isRefused(String reason) {
        BackendException refusal = test.refusal(settings());
        assertThat(refusal.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(refusal)
                .message()
                .startsWith("failed to load model 'm': ")
                .contains(reason)
                .doesNotContain("frame #", "Exception raised from", directory.toString());
        assertThat(test.refusalToComplete(ModelSettings.builder("m", 1))).hasMessage(refusal.getMessage());
    }

    private void change(String record, byte[] content) throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        records.put("model/" + record, content);
        ScriptFiles.write(file, records);
    }

    @Test
    void empty() throws IOException {
        Files.write(file, new byte[0]);
        isRefused("'m/1/model.pt': empty (expected: TorchScript, ");
    }

    @Test
    void directoryInItsPlace() throws IOException {
        Files.delete(file);
        Files.createDirectory(file);
        isRefused("'m/1/model.pt' is not a file (expected: one of TorchScript)");
    }

    @Test
    void pipeInItsPlace() throws IOException, InterruptedException {
        Files.delete(file);
        Process mkfifo = new ProcessBuilder("mkfifo", file.toString()).start();
        Assumptions.assumeTrue(mkfifo.waitFor(1, TimeUnit.MINUTES) && mkfifo.exitValue() == 0, "no mkfifo");
        isRefused("'m/1/model.pt' is not a file (expected: one of TorchScript)");
    }

    @Test
    void noPermission() throws IOException {
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("---------"));
        Assumptions.assumeFalse(Files.isReadable(file), "this user may read all files");
        isRefused("'m/1/model.pt': it cannot be read: ");
    }

    @ParameterizedTest
    @CsvSource({
        "code/__torch__.py, 'class M(Module):\n  def forward(self', expected",
        "code/__torch__.py, '', Unknown type name '__torch__.M'",
        "data.pkl, '', Unexpected end of pickler archive",
        "data.pkl, '\u0080\2ccos\nsystem\n)R.', system",
        "version, 'x', Couldn",
        "version, '999', 999"
    })
    void otherRecords(String record, String content, String reason) throws IOException {
        change(record, content.getBytes(StandardCharsets.ISO_8859_1));
        isRefused(reason);
    }

    /** Replaces bytes of the pickle. */
    private void replace(String before, String after) throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        String pickle = new String(records.get("model/data.pkl"), StandardCharsets.ISO_8859_1);
        assertThat(pickle).contains(before);
        change("data.pkl", pickle.replace(before, after).getBytes(StandardCharsets.ISO_8859_1));
    }

    @Test
    void recordThatIsTooShort() throws IOException {
        change("data/0", new byte[3]);
        isRefused("'m/1/model.pt': damaged: record 'model/data/0' has 3 bytes (expected: 1 elements of 4 bytes, as the"
                + " module says)");
    }

    @Test
    void moreElementsThanTheRecordHas() throws IOException {
        replace("K\1tQ", "J\0\0\0\u0010tQ");
        isRefused("'m/1/model.pt': damaged: record 'model/data/0' has 4 bytes (expected: 268435456 elements of 4 bytes,"
                + " as the module says)");
    }

    @Test
    void tensorThatIsLargerThanItsRecord() throws IOException {
        replace("K\0(K\1t(K\1t", "K\0(J\0\0\0\u0010t(K\1t");
        isRefused(
                "'m/1/model.pt': damaged: a tensor [268435456] with strides [1] from 0 (expected: within the 1 elements"
                        + " of record 'model/data/0')");
    }

    @Test
    void tensorOutsideOfItsRecord() throws IOException {
        replace("K\0(K\1t(K\1t", "J\0\0\0\u0010(K\1t(K\1t");
        isRefused(
                "'m/1/model.pt': damaged: a tensor [1] with strides [1] from 268435456 (expected: within the 1 elements"
                        + " of record 'model/data/0')");
    }

    @Test
    void tensorBeforeItsRecord() throws IOException {
        replace("K\0(K\1t(K\1t", "J\u00FF\u00FF\u00FF\u00FF(K\1t(K\1t");
        isRefused("'m/1/model.pt': damaged: a tensor [1] with strides [1] from -1 (expected: within the 1 elements"
                + " of record 'model/data/0')");
    }

    @Test
    void tensorOfARecordWithoutElements() throws IOException {
        replace("K\1tQ", "K\0tQ");
        isRefused("'m/1/model.pt': damaged: a tensor [1] with strides [1] from 0 (expected: within the 0 elements of"
                + " record 'model/data/0')");
    }

    @Test
    void valueThatIsKeptFarAway() throws IOException {
        replace("K\1tQ", "K\1r\u00FF\u00FF\u00FF\u007FtQ");
        isRefused(" bytes keeps value 2147483647 (expected: at most one for each byte)");
    }

    /** Whose text would have 2^30 numbers. */
    @Test
    void tensorWithSizesThatDouble() throws IOException {
        String doubled = "K\1" + "q\u0080h\u0080\u0086".repeat(30);
        replace("K\0(K\1t(K\1t", "K\0(J\u00FF\u00FF\u00FF\u00FF" + doubled + "t(K\1K\1t");
        isRefused("expected int");
    }

    /** Whose compilation takes more than the stack of a usual thread, wherever it is first executed. */
    @Test
    void longScript() throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        String code = new String(records.get("model/code/__torch__.py"), StandardCharsets.UTF_8);
        String line = "    return torch.add(x, w)\n";
        assertThat(code).contains(line);
        change(
                "code/__torch__.py",
                code.replace(line, "    y = x\n" + "    y = torch.add(y, w)\n".repeat(3000) + "    return y\n")
                        .getBytes(StandardCharsets.UTF_8));

        Map<String, Tensor> outputs = test.run(settings(), 1, Map.of("x", Tensor.ofFloats(ONE, 1)));

        assertThat(outputs.get("OUTPUT__0").floats()).containsExactly(3001);
    }

    @Test
    void scriptOfManyBrackets() throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        String code = new String(records.get("model/code/__torch__.py"), StandardCharsets.UTF_8);
        change(
                "code/__torch__.py",
                code.replace("torch.add", "(".repeat(5000) + "torch.add").getBytes(StandardCharsets.UTF_8));
        isRefused("expected");
    }

    @ParameterizedTest
    @ValueSource(strings = {"(", "[", "-", "~ "})
    void codeThatNestsTooDeep(String sign) throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        String code = new String(records.get("model/code/__torch__.py"), StandardCharsets.UTF_8);
        change(
                "code/__torch__.py",
                code.replace("torch.add", sign.repeat(200_000) + "torch.add").getBytes(StandardCharsets.UTF_8));
        isRefused("its code has more than 10000 brackets or signs within another (expected: fewer)");
    }

    @Test
    void fileThatChangesWhileItIsLoaded() throws IOException, InterruptedException {
        byte[] whole = Files.readAllBytes(file);
        AtomicBoolean ends = new AtomicBoolean();
        Thread writer = Thread.ofPlatform().start(() -> {
            try {
                for (int i = 0; !ends.get(); i++) {
                    Path next = directory.resolve("next");
                    Files.write(next, i % 2 == 0 ? Arrays.copyOf(whole, i % whole.length) : whole);
                    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        try {
            int loaded = 0;
            int refused = 0;
            while (loaded < 20 || refused < 20) {
                BackendException refusal = test.refusal(settings());
                if (refusal == null) {
                    loaded++;
                } else {
                    refused++;
                    assertThat(refusal).message().startsWith("failed to load model 'm': ");
                }
            }
        } finally {
            ends.set(true);
            writer.join();
        }
    }
}
