package dev.nereid.storage.s3;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.text.MessageFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ResourceBundle;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Credentials of a file that changes while the server runs. */
final class FileCredentialsTest {
    @TempDir
    private Path directory;

    private final AtomicInteger reads = new AtomicInteger();
    private final List<String> log = new ArrayList<>();
    private Path file;
    private FileCredentials credentials;

    @BeforeEach
    void setUp() throws IOException {
        file = directory.resolve("credentials.json");
        write("first");
        Map<String, String> environment = Map.of(S3Credentials.CREDENTIAL_PATH, file.toString());
        credentials = new FileCredentials(
                file,
                S3Credentials.of("s3://bucket", environment),
                () -> {
                    reads.incrementAndGet();
                    return S3Credentials.of("s3://bucket", environment);
                },
                S3Clients::provider,
                new ListLogger(log));
    }

    @Test
    void readsTheFileAgainWhenItHasChanged() throws IOException {
        assertThat(keyId()).isEqualTo("first");
        assertThat(keyId()).isEqualTo("first");
        assertThat(reads).hasValue(0);

        write("second");

        assertThat(keyId()).isEqualTo("second");
        assertThat(keyId()).isEqualTo("second");
        assertThat(reads).hasValue(1);
        assertThat(log).containsExactly("INFO credentials of model repositories were read again");
    }

    /** As a mounted secret of Kubernetes is replaced, whatever its size and time. */
    @Test
    void noticesAnotherFileOfTheSameSizeAndTime() throws IOException {
        Path other = directory.resolve("other");
        Files.writeString(other, Files.readString(file).replace("first", "other"));
        Files.setLastModifiedTime(other, Files.getLastModifiedTime(file));
        Files.move(other, file, StandardCopyOption.REPLACE_EXISTING);

        assertThat(keyId()).isEqualTo("other");
    }

    @Test
    void keepsTheCredentialsWhileTheFileIsWrongOrGone() throws IOException {
        Files.writeString(file, "{\"s3\": {\"\": {\"key_id\": \"half a secr");
        assertThat(keyId()).isEqualTo("first");
        assertThat(keyId()).isEqualTo("first");
        assertThat(reads).as("once for each change").hasValue(1);
        Files.delete(file);
        assertThat(keyId()).isEqualTo("first");
        assertThat(log)
                .hasSize(2)
                .allMatch(line -> line.startsWith("WARNING"))
                .noneMatch(line -> line.contains("half"));

        write("third");
        assertThat(keyId()).isEqualTo("third");
    }

    private String keyId() {
        return credentials.resolveCredentials().accessKeyId();
    }

    private void write(String key) throws IOException {
        Files.writeString(
                file,
                "{\"s3\": {\"\": {\"key_id\": \"%s\", \"secret_key\": \"s\", \"region\": \"r\"}}}".formatted(key));
    }

    private record ListLogger(List<String> lines) implements System.Logger {
        @Override
        public String getName() {
            return "test";
        }

        @Override
        public boolean isLoggable(Level level) {
            return true;
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
            lines.add(level + " " + message);
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
            lines.add(level + " " + MessageFormat.format(format, parameters));
        }
    }
}
