package dev.nereid.backend.pytorch.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.pytorch.ScriptFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files as they are read before PyTorch reads them. */
@Timeout(120)
class TorchFileTest {
    private static final String EXPORT =
            " (expected: TorchScript, as torch.jit.script(model.eval()).save(\"model.pt\")";
    private static final int CENTRAL = 0x02014b50;
    private static final int END = 0x06054b50;

    @TempDir
    private Path directory;

    private Path file;

    @BeforeEach
    void writeModule() {
        file = ScriptFiles.write(
                directory,
                "def forward(self, x: Tensor) -> Tensor:\n    return x + self.w\n",
                module -> module.register_buffer("w", torch.ones(1000)));
    }

    private void isRefused(String reason) {
        assertThatThrownBy(() -> TorchFile.read(file))
                .isInstanceOf(TorchFileException.class)
                .message()
                .startsWith(reason)
                .doesNotContain(directory.toString());
    }

    private void write(byte... content) throws IOException {
        Files.write(file, content);
    }

    private void write(String content) throws IOException {
        Files.writeString(file, content);
    }

    private void zip(String... names) throws IOException {
        Map<String, byte[]> records = new LinkedHashMap<>();
        for (String name : names) {
            records.put(name, new byte[] {1});
        }
        ScriptFiles.write(file, records);
    }

    private void put(String name, byte[] content) throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        records.put(name, content);
        ScriptFiles.write(file, records);
    }

    private static ByteBuffer buffer(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static int find(byte[] bytes, int signature, int from) {
        ByteBuffer buffer = buffer(bytes);
        for (int i = from; i + Integer.BYTES <= bytes.length; i++) {
            if (buffer.getInt(i) == signature) {
                return i;
            }
        }
        return -1;
    }

    @Test
    void module() throws Exception {
        TorchFile content = TorchFile.read(file);

        assertThat(content.hasExamples()).isFalse();
        assertThat(content.readsTraining()).isFalse();
        assertThat(content.tensorBytes()).isEqualTo(4000);
    }

    @Test
    void codeThatDependsOnTraining() throws Exception {
        put(
                "model/code/__torch__.py",
                ("#" + "x".repeat((1 << 18) - 5) + "self.training").getBytes(StandardCharsets.UTF_8));

        assertThat(TorchFile.read(file).readsTraining()).isTrue(); // the word crosses the end of what is read at once
    }

    @Test
    void empty() throws IOException {
        write(new byte[0]);
        isRefused("empty" + EXPORT);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 8, 9, 21, 22, 23, 511, 512, 513})
    void shortOfAnyLength(int length) throws IOException {
        write(new byte[length]);
        isRefused("not a zip file" + EXPORT);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "hello | not a zip file",
                "version https://git-lfs.github.com/spec/v1 | a pointer of Git LFS in place of the file (expected: the"
                        + " file itself, as `git lfs pull` fetches it)",
                "<!DOCTYPE html><html> | a page of HTML or XML, perhaps of a failed download",
                "<?xml version=\"1.0\"?> | a page of HTML or XML, perhaps of a failed download",
                "PK | cut short or damaged: ",
            })
    void texts(String content, String reason) throws IOException {
        write(content);
        isRefused(reason);
    }

    @Test
    void otherFormats() throws IOException {
        write("\u0080\2cposix\nsystem\n".getBytes(StandardCharsets.ISO_8859_1));
        isRefused("a pickle, as torch.save wrote it before PyTorch 1.6, whose code is never run" + EXPORT);
        write("\u0089HDF\r\n\u001a\n".getBytes(StandardCharsets.ISO_8859_1));
        isRefused("an HDF5 file, as Keras writes it (expected: TorchScript; or a SavedModel, with the backend"
                + " tensorflow)");
        write("\20\0\0\0\0\0\0\0{\"__metadata__\":{}}".getBytes(StandardCharsets.ISO_8859_1));
        isRefused("a file of safetensors, which has weights without code" + EXPORT);
    }

    @Test
    void otherArchives() throws IOException {
        zip("model/data/aotinductor/model/a.so");
        isRefused("a package of AOT Inductor, whose backend is not there yet" + EXPORT);
        zip("serialized_exported_program.json", "version");
        isRefused("an exported program, as torch.export.save writes it" + EXPORT);
        zip("archive/models/model.json");
        isRefused("an exported program, as torch.export.save writes it" + EXPORT);
        zip("a.txt");
        isRefused("a zip file without code and constants of TorchScript" + EXPORT);
        zip();
        isRefused("");
    }

    @Test
    void picklesOfOtherObjects() throws IOException {
        ScriptFiles.write(
                file,
                Map.of(
                        "archive/data.pkl",
                        "\u0080\2ccollections\nOrderedDict\nq\0".getBytes(StandardCharsets.ISO_8859_1)));
        isRefused("a state_dict, which has the weights of a model without its code" + EXPORT);
        ScriptFiles.write(
                file, Map.of("archive/data.pkl", "\u0080\2cposix\nsystem\nq\0".getBytes(StandardCharsets.ISO_8859_1)));
        isRefused("a pickled object of Python (posix.system), whose code is never run" + EXPORT);
        ScriptFiles.write(file, Map.of("archive/data.pkl", new byte[] {(byte) 0x80, 2, '}', 'q', 0}));
        isRefused("a pickled object of Python, such as a checkpoint, whose code is never run" + EXPORT);
        ScriptFiles.write(file, Map.of("archive/data.pkl", new byte[0]));
        isRefused("a pickled object of Python, such as a checkpoint, whose code is never run" + EXPORT);
    }

    @Test
    void cutAnywhere() throws IOException {
        byte[] whole = Files.readAllBytes(file);
        for (int length = 2; length < whole.length; length += 13) {
            write(Arrays.copyOf(whole, length));
            isRefused("cut short or damaged: ");
        }
    }

    @Test
    void followedByOtherBytes() throws IOException {
        byte[] whole = Files.readAllBytes(file);
        write(Arrays.copyOf(whole, whole.length + 1000));
        isRefused("cut short or damaged: ");
    }

    @Test
    void otherContent() throws IOException {
        byte[] whole = Files.readAllBytes(file);
        int tensor = 0;
        while (buffer(whole).getFloat(tensor) != 1) {
            tensor++;
        }
        whole[tensor + 100] ^= 1;
        write(whole);
        isRefused("damaged: record 'model/data/0' has the checksum ");
    }

    @Test
    void nestedZip() throws IOException {
        ScriptFiles.write(file, Map.of("model.pt", Files.readAllBytes(file)));
        isRefused("a zip file without code and constants of TorchScript" + EXPORT);
    }

    @ParameterizedTest
    @ValueSource(strings = {"../../escaped", "/tmp/escaped", "model/../../escaped", "a\\..\\b"})
    void namesThatLeaveTheDirectory(String name) throws Exception {
        put(name, new byte[] {1});

        TorchFile.read(file); // nothing is unpacked

        assertThat(directory.resolveSibling("escaped")).doesNotExist();
        assertThat(directory.getParent().resolveSibling("escaped")).doesNotExist();
    }

    @Test
    void sameNameTwice() throws IOException {
        put("model/code/__torch__.pz", "second".getBytes(StandardCharsets.UTF_8));
        byte[] bytes = Files.readAllBytes(file);
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        write(text.replace("__torch__.pz", "__torch__.py").getBytes(StandardCharsets.ISO_8859_1));

        isRefused("damaged: record 'model/code/__torch__.py' is there twice (expected: once)");
    }

    /** Writes a module with one more record, of zeros that are compressed a thousand times. */
    private void writeBomb(long bytes) throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        try (OutputStream out = Files.newOutputStream(file);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            byte[] block = new byte[1 << 20];
            for (Map.Entry<String, byte[]> record : records.entrySet()) {
                zip.putNextEntry(new ZipEntry(record.getKey()));
                zip.write(record.getValue());
                zip.closeEntry();
            }
            zip.putNextEntry(new ZipEntry("model/data/bomb"));
            for (long i = 0; i < bytes; i += block.length) {
                zip.write(block);
            }
            zip.closeEntry();
        }
    }

    @Test
    void deflatedRecordOfGigabytes() throws IOException {
        writeBomb(1 << 20);
        claim(3 << 30);

        isRefused("record 'model/data/bomb' claims 3221225472 bytes in ");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 1000, 1 << 20})
    void deflatedRecordThatClaimsLess(long claimed) throws IOException {
        writeBomb(1 << 24);
        claim((int) claimed);

        isRefused("damaged: record 'model/data/bomb' has more bytes (expected: " + claimed + ")");
    }

    /** Changes the size of the last record. */
    private void claim(int size) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        int last = -1;
        for (int at = find(bytes, CENTRAL, 0); at >= 0; at = find(bytes, CENTRAL, at + 1)) {
            last = at;
        }
        buffer(bytes).putInt(last + 24, size);
        write(bytes);
    }

    @Test
    void recordsThatOverlap() throws IOException {
        Map<String, byte[]> records = ScriptFiles.records(file);
        records.put("model/data/big", new byte[1 << 20]);
        for (int i = 0; i < 100; i++) {
            records.put("model/data/copy" + i, new byte[0]);
        }
        byte[] bytes = ScriptFiles.zip(records);
        int big = -1;
        ByteBuffer buffer = buffer(bytes);
        for (int at = find(bytes, CENTRAL, 0); at >= 0; at = find(bytes, CENTRAL, at + 46)) {
            int length = buffer.getShort(at + 28);
            String name = new String(bytes, at + 46, length, StandardCharsets.UTF_8);
            if (name.endsWith("/big")) {
                big = at;
            } else if (name.contains("/copy")) {
                System.arraycopy(bytes, big + 16, bytes, at + 16, 12); // checksum and sizes
                buffer.putInt(at + 42, buffer.getInt(big + 42));
            }
        }
        write(bytes);

        isRefused("damaged: record 'model/data/copy0' claims 1048576 bytes (expected: all records within the ");
    }

    @Test
    void listOfRecordsThatIsTooLong() throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            ByteBuffer end = ByteBuffer.allocate(22).order(ByteOrder.LITTLE_ENDIAN);
            end.putInt(0, END).putShort(8, (short) 1).putShort(10, (short) 1).putInt(12, 1 << 30);
            channel.write(end, 1L << 30); // with a hole in the file
        }

        isRefused("a list of records of 1073741824 bytes (expected: at most 33554432)");
    }

    @Test
    void listOfALargeFile() throws IOException {
        ByteBuffer end = ByteBuffer.allocate(98).order(ByteOrder.LITTLE_ENDIAN);
        end.putInt(0, 0x06064b50).putLong(40, Long.MAX_VALUE);
        end.putInt(56, 0x07064b50).putLong(64, 0);
        end.putInt(76, END).putInt(88, -1);
        write(end.array());

        isRefused("a list of records of 9223372036854775807 bytes (expected: at most 33554432)");
    }

    @Test
    void reasonsAreCut() {
        assertThat(new TorchFileException("x".repeat(1000)).getMessage()).isEqualTo("x".repeat(1000));
        assertThat(new TorchFileException("x".repeat(1_000_000)).getMessage()).isEqualTo("x".repeat(1000) + "…");
        assertThat(new TorchFileException("x".repeat(999) + "\uD83D\uDE00", new IOException()).getMessage())
                .isEqualTo("x".repeat(999) + "…"); // no half character
    }

    /** A file of a few kilobytes, whose pickle has as many values as are possible. */
    @Test
    void pickleOfMillionsOfTuples() throws Exception {
        byte[] pickle = new byte[(int) PickledTensors.MAX_BYTES];
        Arrays.fill(pickle, (byte) 0x85);
        pickle[0] = 'N';
        Map<String, byte[]> records = ScriptFiles.records(file);
        records.put("model/data.pkl", pickle);
        try (OutputStream out = Files.newOutputStream(file);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            for (Map.Entry<String, byte[]> entry : records.entrySet()) {
                zip.putNextEntry(new ZipEntry(entry.getKey()));
                zip.write(entry.getValue());
                zip.closeEntry();
            }
        }
        assertThat(Files.size(file)).isLessThan(20_000);

        assertThat(TorchFile.read(file).tensorBytes()).isEqualTo(4000);
    }

    @Test
    void tooManyRecords() throws IOException {
        ByteArrayOutputStream list = new ByteArrayOutputStream();
        int count = 250_000;
        ByteBuffer record = ByteBuffer.allocate(46 + 8).order(ByteOrder.LITTLE_ENDIAN);
        record.putInt(0, CENTRAL).putShort(28, (short) 8);
        for (int i = 0; i < count; i++) {
            record.put(46, "%08d".formatted(i).getBytes(StandardCharsets.US_ASCII));
            list.write(record.array());
        }
        ByteBuffer end = ByteBuffer.allocate(98).order(ByteOrder.LITTLE_ENDIAN);
        end.putInt(0, 0x06064b50)
                .putLong(4, 44)
                .putLong(24, count)
                .putLong(32, count)
                .putLong(40, list.size());
        end.putInt(56, 0x07064b50).putLong(64, list.size()).putInt(72, 1);
        end.putInt(76, END)
                .putShort(84, (short) -1)
                .putShort(86, (short) -1)
                .putInt(88, -1)
                .putInt(92, -1);
        list.write(end.array());
        write(list.toByteArray());

        isRefused("250000 records (expected: at most 200000)");
    }

    @Test
    void encrypted() throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[find(bytes, CENTRAL, 0) + 8] |= 1;
        write(bytes);

        isRefused("cut short or damaged: ");
    }
}
