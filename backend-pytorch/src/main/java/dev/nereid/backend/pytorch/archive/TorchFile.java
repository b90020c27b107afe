package dev.nereid.backend.pytorch.archive;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * A file of {@code torch.jit.save}: a zip file with code, constants and tensors. Immutable.
 *
 * <p>All of it was read once: PyTorch does not compare checksums, and may end the process with a damaged file. A file
 * that somebody made to do that passes: pickles of more than 8 MiB, for one, are not checked.
 *
 * @param hasExamples whether it contains the inputs of its trace
 * @param readsTraining whether its code asks for the mode of training
 * @param tensorBytes the size of its tensors in bytes
 */
public record TorchFile(boolean hasExamples, boolean readsTraining, long tensorBytes) {
    /** The advice for each kind of file that is no module of TorchScript. */
    private static final String EXPORT =
            " (expected: TorchScript, as torch.jit.script(model.eval()).save(\"model.pt\") or"
                    + " torch.jit.trace(model.eval(), example).save(\"model.pt\") write it; or model.onnx, as"
                    + " torch.onnx.export writes it, with the backend onnxruntime)";

    private static final String CODE = ".py";
    private static final String PICKLE = ".pkl";

    /** More than PyTorch's own files are compressed: it compresses code alone. */
    private static final long MAX_RATIO = 100;

    /** Smaller records may be compressed to any size. */
    private static final long MAX_BYTES_OF_ANY_RATIO = 16 << 20;

    /** Many times as many as the tensors of the largest modules. */
    private static final int MAX_RECORDS = 200_000;

    private static final int BUFFER_BYTES = 1 << 18;
    private static final int HEAD_BYTES = 512;

    /**
     * Reads an existing file, and returns its parsed content.
     *
     * @throws TorchFileException if it is no module of TorchScript, or damaged, with the expected content
     */
    public static TorchFile read(Path file) throws TorchFileException {
        try {
            long listBytes = CentralDirectory.size(file);
            if (listBytes > CentralDirectory.MAX_BYTES) {
                throw new TorchFileException("a list of records of " + listBytes + " bytes (expected: at most "
                        + CentralDirectory.MAX_BYTES + ")");
            }
            try (ZipFile zip = new ZipFile(file.toFile())) {
                return read(zip, Files.size(file));
            }
        } catch (ZipException e) {
            throw otherFile(file, e);
        } catch (IOException e) {
            throw new TorchFileException("it cannot be read: " + reason(e), e);
        } catch (IllegalArgumentException e) { // names that are no text
            throw new TorchFileException("damaged: " + e.getMessage() + " (expected: a zip file)", e);
        }
    }

    private static String reason(IOException e) {
        return e instanceof java.nio.file.FileSystemException failure && failure.getReason() != null
                ? failure.getReason()
                : e.getClass().getSimpleName() + ": " + e.getMessage();
    }

    private static TorchFile read(ZipFile zip, long fileBytes) throws IOException, TorchFileException {
        if (zip.size() > MAX_RECORDS) {
            throw new TorchFileException(zip.size() + " records (expected: at most " + MAX_RECORDS + ")");
        }
        List<? extends ZipEntry> entries = Collections.list(zip.entries());
        requireScript(zip, entries);
        requireSizes(entries, fileBytes);
        boolean hasExamples = false;
        boolean readsTraining = false;
        long tensorBytes = 0;
        byte[] buffer = new byte[BUFFER_BYTES];
        for (ZipEntry entry : entries) {
            String name = entry.getName();
            CodeScan code = new CodeScan();
            check(zip, entry, buffer, name.endsWith(CODE) ? code : null);
            readsTraining |= code.readsTraining();
            hasExamples |= name.endsWith("/traced_inputs.pkl");
            if (name.contains("/data/") || name.contains("/constants/")) {
                tensorBytes += entry.getSize();
            }
        }
        checkTensors(zip, entries);
        return new TorchFile(hasExamples, readsTraining, tensorBytes);
    }

    /** Compares the tensors of a module with their records. The tensors of a trace's inputs have no elements. */
    private static void checkTensors(ZipFile zip, List<? extends ZipEntry> entries)
            throws IOException, TorchFileException {
        Map<String, Long> sizes = new HashMap<>();
        entries.forEach(entry -> sizes.put(entry.getName(), entry.getSize()));
        for (ZipEntry entry : entries) {
            String name = entry.getName();
            boolean hasTensors = name.endsWith("/data.pkl") || name.endsWith("/constants.pkl");
            if (hasTensors && entry.getSize() <= PickledTensors.MAX_BYTES) {
                try (InputStream in = zip.getInputStream(entry)) {
                    byte[] pickle = in.readNBytes((int) entry.getSize());
                    PickledTensors.check(pickle, sizes, name.substring(0, name.length() - PICKLE.length()) + "/");
                }
            }
        }
    }

    /** Refuses archives of other functions of PyTorch. */
    private static void requireScript(ZipFile zip, List<? extends ZipEntry> entries)
            throws IOException, TorchFileException {
        if (has(entries, "/code/") && (has(entries, "/constants.pkl") || has(entries, "/model.json"))) {
            return;
        }
        if (has(entries, "/aotinductor/")) {
            throw new TorchFileException("a package of AOT Inductor, whose backend is not there yet" + EXPORT);
        }
        if (has(entries, "serialized_exported_program.json") || has(entries, "/models/model.json")) {
            throw new TorchFileException("an exported program, as torch.export.save writes it" + EXPORT);
        }
        for (ZipEntry entry : entries) {
            if (entry.getName().endsWith("/data.pkl")) {
                try (InputStream in = zip.getInputStream(entry)) {
                    throw new TorchFileException(pickle(in.readNBytes(HEAD_BYTES)) + EXPORT);
                }
            }
        }
        throw new TorchFileException("a zip file without code and constants of TorchScript" + EXPORT);
    }

    private static boolean has(List<? extends ZipEntry> entries, String part) {
        return entries.stream().anyMatch(entry -> entry.getName().contains(part));
    }

    /** Describes a pickle by the first class that it names. Nothing of it is run. */
    private static String pickle(byte[] head) {
        String text = new String(head, StandardCharsets.ISO_8859_1);
        int name = text.indexOf('c', 2); // the operation that names a class, behind the version
        int end = name < 0 ? -1 : text.indexOf('\n', name);
        int last = end < 0 ? -1 : text.indexOf('\n', end + 1);
        if (name == 2 && text.startsWith("collections\nOrderedDict\n", name + 1)) {
            return "a state_dict, which has the weights of a model without its code";
        }
        if (last > 0 && text.substring(name + 1, last).chars().allMatch(TorchFile::isPrintable)) {
            return "a pickled object of Python (" + text.substring(name + 1, end) + "." + text.substring(end + 1, last)
                    + "), whose code is never run";
        }
        return "a pickled object of Python, such as a checkpoint, whose code is never run";
    }

    private static boolean isPrintable(int character) {
        return character == '\n' || (character > ' ' && character < 0x7F);
    }

    /** Checks what the file claims before memory of that size is allocated, here or by PyTorch. */
    private static void requireSizes(List<? extends ZipEntry> entries, long fileBytes) throws TorchFileException {
        long compressed = 0;
        Set<String> names = new HashSet<>();
        for (ZipEntry entry : entries) {
            if (!names.add(entry.getName())) {
                throw new TorchFileException("damaged: record '" + TorchFileException.shortened(entry.getName())
                        + "' is there twice (expected: once)");
            }
            long size = entry.getSize();
            long packed = entry.getCompressedSize();
            if (size < 0 || packed < 0 || packed > fileBytes - compressed) {
                throw new TorchFileException(
                        "damaged: record '" + TorchFileException.shortened(entry.getName()) + "' claims " + packed
                                + " bytes (expected: all records within the " + fileBytes + " bytes of the file)");
            }
            compressed += packed;
            if (size > MAX_BYTES_OF_ANY_RATIO && size / MAX_RATIO > packed) {
                throw new TorchFileException(
                        "record '" + TorchFileException.shortened(entry.getName()) + "' claims " + size
                                + " bytes in " + packed + " compressed ones (expected: at most " + MAX_RATIO
                                + " times as many)");
            }
        }
    }

    /** Compares the size and the checksum of a record, and scans its code. */
    private static void check(ZipFile zip, ZipEntry entry, byte[] buffer, @Nullable CodeScan code)
            throws IOException, TorchFileException {
        CRC32 checksum = new CRC32();
        long size = 0;
        try (InputStream in = zip.getInputStream(entry)) {
            for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
                size += length;
                if (size > entry.getSize()) {
                    break; // a small record of endless data
                }
                checksum.update(buffer, 0, length);
                if (code != null) {
                    code.add(buffer, length);
                }
            }
        } catch (ZipException | EOFException e) {
            throw new TorchFileException(
                    "damaged: record '" + TorchFileException.shortened(entry.getName()) + "': " + e.getMessage()
                            + " (expected: compressed data)",
                    e);
        }
        if (size != entry.getSize()) {
            throw new TorchFileException("damaged: record '" + TorchFileException.shortened(entry.getName()) + "' has "
                    + (size < entry.getSize() ? "fewer" : "more") + " bytes (expected: " + entry.getSize() + ")");
        }
        if (checksum.getValue() != entry.getCrc()) {
            throw new TorchFileException("damaged: record '%s' has the checksum %08x (expected: %08x)"
                    .formatted(TorchFileException.shortened(entry.getName()), checksum.getValue(), entry.getCrc()));
        }
    }

    private static TorchFileException otherFile(Path file, ZipException cause) {
        byte[] head;
        try (InputStream in = Files.newInputStream(file)) {
            head = in.readNBytes(HEAD_BYTES);
        } catch (IOException e) {
            return new TorchFileException("it cannot be read: " + reason(e), e);
        }
        return new TorchFileException(description(head, cause), cause);
    }

    private static String description(byte[] head, ZipException cause) {
        String text = new String(head, StandardCharsets.ISO_8859_1);
        if (head.length == 0) {
            return "empty" + EXPORT;
        }
        if (text.startsWith("version https://git-lfs.github.com/spec/")) {
            return "a pointer of Git LFS in place of the file (expected: the file itself, as `git lfs pull` fetches"
                    + " it)";
        }
        if (text.startsWith("PK")) {
            return "cut short or damaged: " + cause.getMessage()
                    + " (expected: a whole zip file, as torch.jit.save writes it)";
        }
        if (head[0] == (byte) 0x80 && head.length > 1 && head[1] >= 2 && head[1] <= 5) {
            return "a pickle, as torch.save wrote it before PyTorch 1.6, whose code is never run" + EXPORT;
        }
        if (text.startsWith("\u0089HDF")) {
            return "an HDF5 file, as Keras writes it (expected: TorchScript; or a SavedModel, with the backend"
                    + " tensorflow)";
        }
        if (head.length > Long.BYTES && text.startsWith("{\"", Long.BYTES)) {
            return "a file of safetensors, which has weights without code" + EXPORT;
        }
        if (text.startsWith("<")) {
            return "a page of HTML or XML, perhaps of a failed download" + EXPORT;
        }
        return "not a zip file" + EXPORT;
    }
}
