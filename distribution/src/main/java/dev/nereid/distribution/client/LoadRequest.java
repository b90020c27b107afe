package dev.nereid.distribution.client;

import io.vertx.core.json.Json;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a load: a configuration and files that replace the model's own, and whether it is forced. Immutable.
 *
 * <p>Files are read and encoded in pieces while the request is sent, so that they may be larger than the heap.
 *
 * @param config a configuration as JSON; empty for the configuration of the repository
 * @param files the files by their paths relative to the model's directory
 * @param isForced whether the model is loaded again even if nothing of it has changed
 */
public record LoadRequest(Optional<String> config, Map<String, Path> files, boolean isForced) {
    /** A multiple of 3, so that no piece but the last is padded. */
    private static final int PIECE = 48 << 10;

    public LoadRequest {
        files = Collections.unmodifiableMap(new TreeMap<>(files));
    }

    /** A part of the body: a text, or the content of a file. */
    private sealed interface Part {
        record Text(String text) implements Part {}

        record Content(Path file, long size) implements Part {}
    }

    BodyPublisher body() throws IOException {
        List<Part> parts = parts();
        long length = 0;
        for (Part part : parts) {
            length += switch (part) {
                case Part.Text(String text) -> text.getBytes(StandardCharsets.UTF_8).length;
                case Part.Content(Path file, long size) -> (size + 2) / 3 * 4;
            };
        }
        return BodyPublishers.fromPublisher(BodyPublishers.ofByteArrays(() -> new Pieces(parts)), length);
    }

    private List<Part> parts() throws IOException {
        List<Part> parts = new ArrayList<>();
        String separator = "{\"parameters\":{";
        if (config.isPresent()) {
            parts.add(new Part.Text(separator + "\"config\":" + Json.encode(config.get())));
            separator = ",";
        }
        if (isForced) {
            parts.add(new Part.Text(separator + "\"force\":true"));
            separator = ",";
        }
        for (Map.Entry<String, Path> entry : files.entrySet()) {
            parts.add(new Part.Text(separator + Json.encode("file:" + entry.getKey()) + ":\""));
            parts.add(new Part.Content(entry.getValue(), Files.size(entry.getValue())));
            parts.add(new Part.Text("\""));
            separator = ",";
        }
        parts.add(new Part.Text(parts.isEmpty() ? "{}" : "}}"));
        return parts;
    }

    /** The bytes of a body, piece by piece. Confined to the thread that sends them. */
    private static final class Pieces implements Iterator<byte[]> {
        private final Iterator<Part> parts;
        private @Nullable InputStream content;
        private long remaining;
        private Path file = Path.of("");

        Pieces(List<Part> parts) {
            this.parts = parts.iterator();
        }

        @Override
        public boolean hasNext() {
            return remaining > 0 || parts.hasNext();
        }

        @Override
        public byte[] next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            try {
                return remaining > 0 ? piece() : begin(parts.next());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private byte[] begin(Part part) throws IOException {
            return switch (part) {
                case Part.Text(String text) -> text.getBytes(StandardCharsets.UTF_8);
                case Part.Content(Path path, long size) -> {
                    file = path;
                    remaining = size;
                    content = Files.newInputStream(path);
                    yield size == 0 ? new byte[0] : piece();
                }
            };
        }

        private byte[] piece() throws IOException {
            InputStream in = content;
            byte[] raw = in == null ? new byte[0] : in.readNBytes((int) Math.min(PIECE, remaining));
            remaining -= raw.length;
            if (in != null && (remaining == 0 || raw.length == 0)) {
                in.close();
                content = null;
            }
            if (raw.length < PIECE && remaining > 0) {
                throw new IOException(file + ": became shorter while it was sent");
            }
            return Base64.getEncoder().encode(raw);
        }
    }
}
