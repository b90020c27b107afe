package dev.nereid.api.file;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ServerPathsTest {
    @TempDir
    private Path directory;

    @Test
    void areThoseWithinTheRepository() throws IOException {
        Path real = Files.createDirectories(directory.resolve("real"));
        Path link = Files.createSymbolicLink(directory.resolve("link"), real);

        assertThat(ServerPaths.within("'" + real + "/m/1/model.onnx' and " + link + "/m/2", link))
                .isEqualTo("'m/1/model.onnx' and m/2");
        assertThat(ServerPaths.within("no path", link)).isEqualTo("no path");
        assertThat(ServerPaths.within("/opt/models/lib.so, s3://b/models/m, /models/m", Path.of("/models")))
                .as("below no other directory")
                .isEqualTo("/opt/models/lib.so, s3://b/models/m, m");
        assertThat(ServerPaths.within(directory + "/gone/m", directory.resolve("gone")))
                .isEqualTo("m");
        assertThat(ServerPaths.within("/etc/hosts", Path.of("/"))).isEqualTo("/etc/hosts");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
            cannot open /opt/lib/libx.so.1: gone                     | cannot open libx.so.1: gone
            '/opt/lib/a.so', "/opt/lib/b.so" (/opt/lib/c.so)         | 'a.so', "b.so" (c.so)
            not in [/usr/lib/x86_64, /usr/local/lib/]                | not in [x86_64, lib]
            jar:file:/opt/plugins/p.jar!/x/Y.class                   | jar:file:Y.class
            path=/home/someone/m                                     | path=m
            m/1/model.onnx failed                                    | m/1/model.onnx failed
            ../1/model.onnx failed                                   | ../1/model.onnx failed
            s3://bucket/models/m and https://host/a/b                | s3://bucket/models/m and https://host/a/b
            read/write of 1/2/3, ratio 3 / 4 / 5, N/A, /tmp          | read/write of 1/2/3, ratio 3 / 4 / 5, N/A, /tmp
            '/etc/known' is no file, /etc/known too                  | '/etc/known' is no file, /etc/known too
            """)
    void areNamesInTextsOfForeignCode(String text, String shown) {
        assertThat(ServerPaths.namesAlone(text, "label_filename: \"/etc/known\""))
                .isEqualTo(shown);
    }

    @Test
    void areFoundInLongTexts() {
        String slashes = "/".repeat(1_000_000);
        String names = "/a".repeat(500_000);

        assertThat(ServerPaths.namesAlone(slashes, "")).isEqualTo(slashes);
        assertThat(ServerPaths.namesAlone(names, "")).isEqualTo("a");
    }

    @Test
    void areNoReasons() {
        assertThat(ServerPaths.reason(new NoSuchFileException("/secret/m"))).isEqualTo("No such file or directory");
        assertThat(ServerPaths.reason(new UncheckedIOException(new AccessDeniedException("/secret/m"))))
                .isEqualTo("AccessDeniedException");
        assertThat(ServerPaths.reason(new AccessDeniedException("/secret/m", null, "another user")))
                .isEqualTo("another user");
        assertThat(ServerPaths.reason(new IOException("/secret/m"))).isEqualTo("IOException");
    }
}
