package dev.nereid.backend.onnx;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Explains messages of ONNX Runtime about libraries that are missing or too old. Stateless. */
final class MissingLibraries {
    /** How the C library of Linux names a file that it did not find. Windows does not say which one is missing. */
    private static final Pattern MISSING =
            Pattern.compile("\\b(lib[\\w+.-]+\\.so[.\\d]*): cannot open shared object file");

    /** How it names a library that is too old. */
    private static final Pattern OLD = Pattern.compile("undefined symbol: \\w+, version (lib[\\w+.-]+)");

    private MissingLibraries() {}

    /** Returns what to add to a message that names a missing or too old library; empty if it names none. */
    static String explanation(String message) {
        Matcher old = OLD.matcher(message);
        if (old.find()) {
            return "; the " + old.group(1) + " of this machine, part of " + owner(old.group(1))
                    + ", is too old (expected: the last release of it)";
        }
        Matcher matcher = MISSING.matcher(message);
        return matcher.find()
                ? "; " + matcher.group(1) + " is part of " + owner(matcher.group(1))
                        + " (expected: in a directory that LD_LIBRARY_PATH names at the start of the server, or among the"
                        + " libraries of the system)"
                : "";
    }

    private static String owner(String library) {
        if (library.startsWith("libcuda.so")) {
            return "the driver of the GPU";
        }
        if (library.startsWith("libcudnn")) {
            return "cuDNN 9 for CUDA 12";
        }
        if (library.startsWith("libnvinfer") || library.startsWith("libnvonnxparser")) {
            return "TensorRT 10 for CUDA 12";
        }
        boolean ofCuda = library.startsWith("libcu") || library.startsWith("libnv");
        return ofCuda ? "CUDA 12" : "what the GPU build of ONNX Runtime needs";
    }
}
