package dev.nereid.backend.tensorflow.capi;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * An operating system and processor for which TensorFlow Java is published. Immutable.
 *
 * @param directories the names of the directories in the artifacts of the platform, such as {@code linux-x86_64}; the
 *     build for GPUs first
 * @param libraryFile the file name of the library with the C API
 */
public record NativePlatform(List<String> directories, String libraryFile) {
    private static final String PACKAGE = "org/tensorflow/internal/c_api/";
    private static final String LINUX_LIBRARY = "libtensorflow_cc.so.2";
    /** {@code struct utsname} of macOS: five fields of 256 bytes. */
    private static final int FIELD_BYTES = 256;

    private static final int FIELDS = 5;
    private static final int MACHINE_FIELD = 4;
    private static final Path LINUX_EXECUTABLE = Path.of("/proc/self/exe");
    /** The offset of the machine in an ELF header, in 2 bytes, and the numbers of two machines. */
    private static final int ELF_MACHINE = 18;

    private static final int ELF_X86_64 = 62;
    private static final int ELF_AARCH64 = 183;

    /** Copies the components. */
    public NativePlatform {
        directories = List.copyOf(directories);
    }

    /**
     * Returns the platform for the names that {@code uname} reports.
     *
     * @throws UnsupportedOperationException if TensorFlow Java is not published for it
     */
    static NativePlatform of(String system, String machine) {
        String processor = switch (machine.toLowerCase(Locale.ROOT)) {
            case "x86_64", "amd64" -> "x86_64";
            case "aarch64", "arm64" -> "arm64";
            default -> machine;
        };
        return switch (system + "-" + processor) {
            case "Linux-x86_64" -> new NativePlatform(List.of("linux-x86_64-gpu", "linux-x86_64"), LINUX_LIBRARY);
            case "Linux-arm64" -> new NativePlatform(List.of("linux-arm64"), LINUX_LIBRARY);
            case "Darwin-arm64" -> new NativePlatform(List.of("macosx-arm64"), "libtensorflow_cc.2.dylib");
            default ->
                throw new UnsupportedOperationException("platform: " + system + " " + machine
                        + " (expected: Linux x86_64, Linux aarch64 or Darwin arm64)");
        };
    }

    /**
     * Returns the platform of this process. On Linux the header of its executable determines it, elsewhere its C
     * library.
     *
     * @throws UnsupportedOperationException if TensorFlow Java is not published for it
     */
    public static NativePlatform current() {
        return ofExecutable(LINUX_EXECUTABLE).orElseGet(NativePlatform::ofUname);
    }

    /** Returns the platform that an ELF executable was built for; empty if there is no such file. */
    static Optional<NativePlatform> ofExecutable(Path file) {
        byte[] header;
        try (InputStream in = Files.newInputStream(file)) {
            header = in.readNBytes(ELF_MACHINE + Short.BYTES);
        } catch (IOException e) {
            return Optional.empty(); // not Linux, or a Linux without /proc
        }
        if (header.length < ELF_MACHINE + Short.BYTES || header[1] != 'E' || header[2] != 'L' || header[3] != 'F') {
            return Optional.empty();
        }
        int machine =
                Byte.toUnsignedInt(header[ELF_MACHINE]) | Byte.toUnsignedInt(header[ELF_MACHINE + 1]) << Byte.SIZE;
        return Optional.of(
                switch (machine) {
                    case ELF_X86_64 -> of("Linux", "x86_64");
                    case ELF_AARCH64 -> of("Linux", "aarch64");
                    default -> of("Linux", "(ELF machine " + machine + ")");
                });
    }

    private static NativePlatform ofUname() {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> uname = linker.defaultLookup().find("uname");
        if (uname.isEmpty()) {
            return of("Windows", "x86_64");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = arena.allocate(FIELDS * FIELD_BYTES);
            callUname(linker, uname.get(), names);
            return of(names.getString(0), names.getString(MACHINE_FIELD * FIELD_BYTES));
        }
    }

    @SuppressWarnings("restricted")
    private static void callUname(Linker linker, MemorySegment uname, MemorySegment names) {
        MethodHandle call =
                linker.downcallHandle(uname, FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
        int result;
        try {
            result = (int) call.invokeExact(names);
        } catch (Throwable e) {
            throw new IllegalStateException("uname failed", e);
        }
        if (result < 0) {
            throw new IllegalStateException("uname: " + result + " (expected: >= 0)");
        }
    }

    /** Returns whether the processor must have AVX, with which TensorFlow is built. */
    boolean needsAvx() {
        return directories.contains("linux-x86_64");
    }

    /** Returns the names of the directories that an artifact may have, in the order in which they are looked for. */
    List<String> prefixes() {
        return directories.stream().map(directory -> PACKAGE + directory + "/").toList();
    }

    /** Returns the name of the platform, such as {@code linux-x86_64}. */
    @Override
    public String toString() {
        return directories.getLast();
    }
}
