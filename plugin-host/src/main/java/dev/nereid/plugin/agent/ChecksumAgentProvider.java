package dev.nereid.plugin.agent;

import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

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
}
