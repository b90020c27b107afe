package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.presets.TorchLibrary;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.bytedeco.pytorch.BoolType;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.IValueVector;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.Type;

/** Writes files of TorchScript, from sources that PyTorch itself compiles. Static functions only. */
public final class ScriptFiles {
    /** The directory that the tests of this module share for unpacked libraries. */
    static final Path NATIVES = Path.of("target", "native").toAbsolutePath();

    static final String FILE = "model.pt";

    private static final TorchLibrary LIBRARY = load();

    private ScriptFiles() {}

    private static TorchLibrary load() {
        try {
            return PyTorchNatives.load(NATIVES, NATIVES);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the library, which stays loaded. */
    static TorchLibrary library() {
        return LIBRARY;
    }

    /** Writes {@code model.pt} for a module in the mode of evaluation; returns the file. */
    public static Path write(Path directory, String source) {
        return write(directory, source, module -> {});
    }

    /**
     * Writes {@code model.pt}.
     *
     * @param source the methods of the module
     * @param prepare adds buffers, before the source is compiled
     */
    public static Path write(Path directory, String source, Consumer<JitModule> prepare) {
        return write(directory, source, prepare, module -> {});
    }

    /** Writes {@code model.pt} as a trace with the inputs that it was made with. */
    static Path trace(Path directory, String source, Tensor... examples) {
        return write(directory, source, module -> {}, module -> {
            try (IValueVector inputs = new IValueVector()) {
                inputs.resize(examples.length);
                for (int i = 0; i < examples.length; i++) {
                    inputs.put(i, new IValue(examples[i]));
                }
                module.store_traced_inputs("forward", inputs);
            }
        });
    }

    static Path write(Path directory, String source, Consumer<JitModule> prepare, Consumer<JitModule> complete) {
        LIBRARY.version();
        Path file = directory.resolve(FILE);
        try (JitModule module = new JitModule(new QualifiedName("__torch__.M"), new CompilationUnit(), true)) {
            try (Type.TypePtr truth = new Type.TypePtr(BoolType.get().get());
                    IValue isTraining = new IValue(false)) {
                module.register_attribute("training", truth, isTraining);
            }
            prepare.accept(module);
            module.define(source);
            complete.accept(module);
            module.save(file.toString());
        }
        return file;
    }

    /** Returns the records of a file, in their order. */
    public static Map<String, byte[]> records(Path file) throws IOException {
        Map<String, byte[]> records = new LinkedHashMap<>();
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (ZipEntry entry : Collections.list(zip.entries())) {
                records.put(entry.getName(), zip.getInputStream(entry).readAllBytes());
            }
        }
        return records;
    }

    /** Writes records, not compressed and with right checksums. */
    public static void write(Path file, Map<String, byte[]> records) throws IOException {
        Files.write(file, zip(records));
    }

    /** Returns a zip file of records, not compressed and with right checksums. */
    public static byte[] zip(Map<String, byte[]> records) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            for (Map.Entry<String, byte[]> each : records.entrySet()) {
                ZipEntry entry = new ZipEntry(each.getKey());
                CRC32 checksum = new CRC32();
                checksum.update(each.getValue());
                entry.setMethod(ZipEntry.STORED);
                entry.setSize(each.getValue().length);
                entry.setCrc(checksum.getValue());
                zip.putNextEntry(entry);
                zip.write(each.getValue());
                zip.closeEntry();
            }
        }
        return bytes.toByteArray();
    }
}
