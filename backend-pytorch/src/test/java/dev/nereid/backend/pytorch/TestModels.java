package dev.nereid.backend.pytorch;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.bytedeco.pytorch.BoolType;
import org.bytedeco.pytorch.CompilationUnit;
import org.bytedeco.pytorch.IValue;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.SingletonTypePtr;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.Type;

/** Makes files of TorchScript from sources. Static functions; the first use loads PyTorch. */
final class TestModels {
    /** Where the natives of all tests are unpacked, once. */
    static final Path CACHE = Path.of("target", "natives").toAbsolutePath();

    private TestModels() {}

    /** Loads PyTorch, once for the process. */
    static void ensureLoaded() {
        try {
            PyTorchNatives.load(CACHE, CACHE);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Begins a module in the mode of evaluation from the source of its methods. */
    static Script script(String source) {
        return new Script(source);
    }

    /** Returns numbers of a sequence that is always the same. */
    static float[] numbers(int count, long seed) {
        Random random = new Random(seed);
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = random.nextFloat() - 0.5f;
        }
        return numbers;
    }

    /** A module before it is saved. Confined to the test. */
    static final class Script {
        private final String source;
        private final List<Consumer<JitModule>> members = new ArrayList<>();
        private boolean training;

        private Script(String source) {
            this.source = source;
        }

        /** Adds a buffer. */
        Script buffer(String name, long[] shape, float... values) {
            return member(name, shape, values, false);
        }

        /** Adds a parameter. */
        Script parameter(String name, long[] shape, float... values) {
            return member(name, shape, values, true);
        }

        /** Adds a parameter of numbers by a seed. */
        Script weight(String name, long... shape) {
            int count = 1;
            for (long dim : shape) {
                count *= (int) dim;
            }
            return parameter(name, shape, numbers(count, name.hashCode()));
        }

        private Script member(String name, long[] shape, float[] values, boolean isParameter) {
            members.add(module -> {
                try (Tensor tensor = Tensor.create(values, shape)) {
                    if (isParameter) {
                        module.register_parameter(name, tensor, false);
                    } else {
                        module.register_buffer(name, tensor);
                    }
                }
            });
            return this;
        }

        /** Leaves the module in the mode of training. */
        Script training() {
            training = true;
            return this;
        }

        /** Adds the attribute that modules of Python have. */
        private void registerTraining(JitModule module) {
            try (SingletonTypePtr bool = new SingletonTypePtr(BoolType.get());
                    Type.TypePtr type = new Type.TypePtr(bool);
                    IValue value = new IValue(training)) {
                module.register_attribute("training", type, value, false, false);
            }
        }

        /** Writes the module. */
        void save(Path file) {
            ensureLoaded();
            try (CompilationUnit unit = new CompilationUnit();
                    QualifiedName name = new QualifiedName("__torch__.M");
                    JitModule module = new JitModule(name, unit, true)) {
                registerTraining(module);
                members.forEach(member -> member.accept(module));
                module.define(source + "\n");
                module.save(file.toString());
            }
        }
    }

    /** Replaces the code in a saved file: it may declare classes, as no other way of the presets can. */
    static void replaceCode(Path file, String code) throws IOException {
        Path changed = file.resolveSibling(file.getFileName() + ".changed");
        try (ZipFile from = new ZipFile(file.toFile());
                OutputStream out = Files.newOutputStream(changed);
                ZipOutputStream to = new ZipOutputStream(out)) {
            for (ZipEntry entry : Collections.list(from.entries())) {
                if (entry.getName().endsWith(".debug_pkl")) {
                    continue; // the places in the old code
                }
                byte[] content;
                if (entry.getName().endsWith("/code/__torch__.py")) {
                    content = code.getBytes(StandardCharsets.UTF_8);
                } else {
                    try (InputStream in = from.getInputStream(entry)) {
                        content = in.readAllBytes();
                    }
                }
                to.putNextEntry(stored(entry.getName(), content));
                to.write(content);
                to.closeEntry();
            }
        }
        Files.move(changed, file, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    }

    private static ZipEntry stored(String name, byte[] content) {
        ZipEntry entry = new ZipEntry(name);
        CRC32 checksum = new CRC32();
        checksum.update(content);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(content.length);
        entry.setCrc(checksum.getValue());
        return entry;
    }
}
