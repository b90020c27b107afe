package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Certificates made by the system's openssl. They are those of an authority, of a server at 127.0.0.1 and of a client;
 * the authority signs the other two. Immutable.
 */
final class Certificates {
    private static final String NEW_KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

    private final Path directory;

    private Certificates(Path directory) {
        this.directory = directory;
    }

    /** Creates {@code ca.pem}, {@code server.pem}, {@code server.key}, {@code client.pem} and {@code client.key}. */
    static Certificates make(Path directory) throws IOException {
        Program.assumeRuns("openssl", "version");
        Certificates made = new Certificates(directory);
        made.openssl("req -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.pem " + NEW_KEY);
        made.sign("server", "subjectAltName=IP:127.0.0.1");
        made.sign("client", "extendedKeyUsage=clientAuth");
        return made;
    }

    Path directory() {
        return directory;
    }

    String file(String name) {
        return directory.resolve(name).toString();
    }

    private void sign(String name, String extension) throws IOException {
        Files.writeString(directory.resolve(name + ".ext"), extension + "\n");
        openssl("req -subj /CN=" + name + " -keyout " + name + ".key -out " + name + ".csr " + NEW_KEY);
        openssl("x509 -req -days 2 -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile " + name
                + ".ext -out " + name + ".pem");
    }

    /** Names of files refer to files in the directory. */
    private void openssl(String arguments) throws IOException {
        List<String> command = Stream.concat(
                        Stream.of("openssl"),
                        Stream.of(arguments.split(" "))
                                .map(word -> word.matches("\\w+\\.(pem|key|csr|ext)") ? file(word) : word))
                .toList();
        Program.Result result = Program.run(Map.of(), command);
        assertThat(result.status()).as(result.out()).isZero();
    }
}
