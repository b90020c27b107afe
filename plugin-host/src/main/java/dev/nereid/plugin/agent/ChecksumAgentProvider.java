package dev.nereid.plugin.agent;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.file.ContainedPath;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The bundled agent {@code checksum}, which verifies files of a model before each load. Immutable.
 *
 * <p>Each parameter names an algorithm and a file, relative to the model's directory, and has the expected checksum as its
 * value: {@code SHA256:1/model.onnx}, or {@code MD5:1/model.onnx} as on the reference server.
 */
final class ChecksumAgentProvider implements RepositoryAgentProvider {
    static final String NAME = "checksum";

    @Override
    public String name() {
        return NAME;
    }

    /** Reads all parameters, so that a wrong one fails the load before any file is read. */
    @Override
    public RepositoryAgent create(AgentContext context) {
        List<FileChecksum> checksums = new ArrayList<>();
        for (Map.Entry<String, String> parameter : new TreeMap<>(context.parameters()).entrySet()) {
            checksums.add(FileChecksum.parse(parameter.getKey(), parameter.getValue()));
        }
        return directory -> verify(directory, checksums);
    }

    private static Path verify(Path directory, List<FileChecksum> checksums) {
        for (FileChecksum checksum : checksums) {
            checksum.verify(directory);
        }
        return directory;
    }

    /**
     * The expected checksum of one file of a model. Immutable; reads the disk at each check.
     *
     * @param algorithm the algorithm, as messages name it
     * @param file the path of the file, relative to the model's directory
     * @param expected the expected checksum, in lower-case hexadecimal digits; another text fits no file
     */
    private record FileChecksum(Algorithm algorithm, String file, String expected) {
        /** The algorithms of checksums. */
        enum Algorithm {
            SHA256("SHA-256", 64),
            MD5("MD5", 32);

            private final String standardName;
            private final int digits;

            Algorithm(String standardName, int digits) {
                this.standardName = standardName;
                this.digits = digits;
            }

            MessageDigest create() {
                try {
                    return MessageDigest.getInstance(standardName);
                } catch (NoSuchAlgorithmException e) {
                    throw new IllegalStateException("every Java platform has " + standardName, e);
                }
            }
        }

        private static final Map<String, Algorithm> BY_KEY =
                Map.of("SHA256", Algorithm.SHA256, "SHA-256", Algorithm.SHA256, "MD5", Algorithm.MD5);
        private static final Pattern HEXADECIMAL = Pattern.compile("[0-9a-f]*");
        private static final int BUFFER = 1 << 16;

        /** Reads a parameter of the agent: {@code SHA256:<file>} or {@code MD5:<file>}, and the checksum. */
        static FileChecksum parse(String key, String value) {
            int colon = key.indexOf(':');
            if (colon < 0 || colon + 1 == key.length()) {
                throw invalid("failed to parse key: " + key + " (expected: SHA256:<file> or MD5:<file>)");
            }
            String file = key.substring(colon + 1);
            Optional<Algorithm> algorithm =
                    Optional.ofNullable(BY_KEY.get(key.substring(0, colon).toUpperCase(Locale.ROOT)));
            if (algorithm.isEmpty()) {
                throw new BackendException(
                        ErrorCode.UNSUPPORTED,
                        "Unsupported checksum algorithm: " + key.substring(0, colon) + " for file " + file
                                + " (expected: SHA256 or MD5)");
            }
            return new FileChecksum(algorithm.get(), file, value.strip().toLowerCase(Locale.ROOT));
        }

        /** Returns whether the expected checksum is one. No file has another one. */
        private boolean isPossible() {
            return expected.length() == algorithm.digits
                    && HEXADECIMAL.matcher(expected).matches();
        }

        /** Compares the checksum of the file in a model's directory with the expected one. */
        void verify(Path directory) {
            Path path = resolve(directory);
            String found;
            try {
                found = compute(path);
            } catch (IOException e) {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "failed to open text file for read " + file + ": " + reason(e) + " (expected: " + algorithm
                                + " " + Quoted.text(expected) + ")",
                        e);
            }
            if (!found.equals(expected)) {
                String mismatch = "Mismatched " + algorithm + " hash for file " + file + ", expect: "
                        + Quoted.text(expected) + ", got: " + found;
                throw invalid(
                        isPossible()
                                ? mismatch
                                : mismatch + " (expected: " + algorithm.digits + " hexadecimal digits)");
            }
        }

        /** Finds the file, which must lie in the directory, not behind a link that leaves it. */
        private Path resolve(Path directory) {
            try {
                return ContainedPath.file(algorithm + " checksum", directory, file);
            } catch (InferenceException e) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, e.publicMessage(), e);
            }
        }

        private static String reason(IOException failure) {
            return failure instanceof NoSuchFileException
                    ? "No such file or directory"
                    : failure.getClass().getSimpleName();
        }

        private String compute(Path path) throws IOException {
            MessageDigest digest = algorithm.create();
            byte[] buffer = new byte[BUFFER];
            try (InputStream in = Files.newInputStream(path)) {
                for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                    digest.update(buffer, 0, read);
                }
            }
            return HexFormat.of().formatHex(digest.digest());
        }

        private static BackendException invalid(String message) {
            return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
        }
    }
}
