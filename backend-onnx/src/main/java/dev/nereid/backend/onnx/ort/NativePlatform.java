package dev.nereid.backend.onnx.ort;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.HostMachine;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * An operating system and processor for which ONNX Runtime is published. Immutable.
 *
 * @param directory the name of the platform's directory in the artifact, such as {@code linux-x64}
 * @param widePaths whether paths are UTF-16 in the C API (Windows) rather than bytes
 */
public record NativePlatform(String directory, String libraryFile, boolean widePaths) {
    private static final List<String> COMPANIONS =
            List.of("_providers_cuda", "_providers_tensorrt", "_providers_shared");

    /** Returns the platform of a machine; throws {@link UnsupportedOperationException} without ONNX Runtime for it. */
    static NativePlatform of(HostMachine machine) {
        String processor = switch (machine.processor().toLowerCase(Locale.ROOT)) {
            case "x86_64", "amd64" -> "x64";
            case "aarch64", "arm64" -> "aarch64";
            default -> machine.processor();
        };
        return switch (machine.system() + "-" + processor) {
            case "Linux-x64" -> new NativePlatform("linux-x64", "libonnxruntime.so", false);
            case "Linux-aarch64" -> new NativePlatform("linux-aarch64", "libonnxruntime.so", false);
            case "Darwin-aarch64" -> new NativePlatform("osx-aarch64", "libonnxruntime.dylib", false);
            case "Windows-x64" -> new NativePlatform("win-x64", "onnxruntime.dll", true);
            default ->
                throw new UnsupportedOperationException("platform: " + machine.system() + " " + machine.processor()
                        + " (expected: Linux x86_64, Linux aarch64, Darwin arm64 or Windows x86_64)");
        };
    }

    /** Returns this process's platform; throws {@link UnsupportedOperationException} without ONNX Runtime for it. */
    public static NativePlatform current() {
        return of(HostMachine.current());
    }

    /** Returns the address of {@code path} as the C API expects it. It lives as long as {@code arena}. */
    long writePath(Arena arena, Path path) {
        String text = path.toAbsolutePath().toString();
        return widePaths ? arena.allocateFrom(text, StandardCharsets.UTF_16LE).address() : CStrings.write(arena, text);
    }

    /** Returns the name of the native library's resource in the artifact. */
    public String resource() {
        return resource(libraryFile);
    }

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
