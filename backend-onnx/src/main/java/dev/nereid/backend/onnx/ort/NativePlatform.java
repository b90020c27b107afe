package dev.nereid.backend.onnx.ort;

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
 * An operating system and processor for which ONNX Runtime is published. Immutable.
 *
 * @param directory the name of the platform's directory in the artifact, such as {@code linux-x64}
 * @param libraryFile the file name of the native library
 * @param widePaths whether paths are UTF-16 in the C API (Windows) rather than bytes
 */
public record NativePlatform(String directory, String libraryFile, boolean widePaths) {
    private static final List<String> COMPANIONS =
            List.of("_providers_cuda", "_providers_tensorrt", "_providers_shared");

    /** The size of a field of {@code struct utsname}: glibc and musl, and macOS. */
    private static final int LINUX_FIELD_BYTES = 65;

    private static final int MACOS_FIELD_BYTES = 256;

    private static final int UTSNAME_BYTES = 5 * MACOS_FIELD_BYTES;
    private static final int MACHINE_FIELD = 4;

    private static final Path LINUX_EXECUTABLE = Path.of("/proc/self/exe");
    /**
     * The offset of the machine in an ELF header. The machine has 2 bytes in its own order; the numbers of two machines
     * follow.
     */
    private static final int ELF_MACHINE = 18;

    private static final int ELF_X86_64 = 62;
    private static final int ELF_AARCH64 = 183;

    /**
     * Returns the platform for the names that {@code uname} reports.
     *
     * @param system the operating system: {@code Linux}, {@code Darwin} or {@code Windows}
     * @param machine the processor, such as {@code x86_64}
     * @throws UnsupportedOperationException if ONNX Runtime is not published for it
     */
    static NativePlatform of(String system, String machine) {
        String processor = switch (machine.toLowerCase(Locale.ROOT)) {
            case "x86_64", "amd64" -> "x64";
            case "aarch64", "arm64" -> "aarch64";
            default -> machine;
        };
        return switch (system + "-" + processor) {
            case "Linux-x64" -> new NativePlatform("linux-x64", "libonnxruntime.so", false);
            case "Linux-aarch64" -> new NativePlatform("linux-aarch64", "libonnxruntime.so", false);
            case "Darwin-aarch64" -> new NativePlatform("osx-aarch64", "libonnxruntime.dylib", false);
            case "Windows-x64" -> new NativePlatform("win-x64", "onnxruntime.dll", true);
            default ->
                throw new UnsupportedOperationException("platform: " + system + " " + machine
                        + " (expected: Linux x86_64, Linux aarch64, Darwin arm64 or Windows x86_64)");
        };
    }

    /**
     * Returns the platform of this process. On Linux the header of its executable determines it, elsewhere its C
     * library.
     *
     * <p>The alternatives are worse: system properties can be overridden, and the management bean for the same names
     * takes 10 to 90 ms to start. The first use of foreign functions takes longer still, and the server needs the
     * platform at every start, even if no model needs the backend.
     *
     * @throws UnsupportedOperationException if ONNX Runtime is not published for it
     */
    public static NativePlatform current() {
        return ofExecutable(LINUX_EXECUTABLE).orElseGet(NativePlatform::ofUname);
    }

    /**
     * Returns the platform that an executable was built for. The machine in the ELF header of {@code file} determines
     * it; empty if there is no such file.
     */
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

    /** Returns the platform that the C library of this process names. */
    static NativePlatform ofUname() {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> uname = linker.defaultLookup().find("uname");
        if (uname.isEmpty()) {
            return of("Windows", "x86_64"); // the only system without uname, and the only processor published for it
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = arena.allocate(UTSNAME_BYTES);
            callUname(linker, uname.get(), names);
            String system = names.getString(0);
            long field = system.equals("Linux") ? LINUX_FIELD_BYTES : MACOS_FIELD_BYTES;
            return of(system, names.getString(MACHINE_FIELD * field));
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

    /** Returns the name of the native library's resource in the artifact. */
    public String resource() {
        return resource(libraryFile);
    }

    /** Returns the name of the resource of a file of the platform. */
    String resource(String file) {
        return "ai/onnxruntime/native/" + directory + "/" + file;
    }

    /**
     * Returns the file names of the libraries that the native library opens in its own directory, for execution
     * providers. An artifact that lacks the first one, that of CUDA, needs none of them.
     */
    List<String> companions() {
        int dot = libraryFile.lastIndexOf('.');
        return COMPANIONS.stream()
                .map(name -> libraryFile.substring(0, dot) + name + libraryFile.substring(dot))
                .toList();
    }
}
