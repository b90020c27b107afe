package dev.nereid.storage.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class S3CredentialsTest {
    private static final String FILE = """
            {
              "gs": {"": "PATH_TO_GOOGLE_APPLICATION_CREDENTIALS", "gs://gcs-bucket-002": "PATH_2"},
              "s3": {
                "": {"secret_key": "secret0", "key_id": "key0", "region": "region0", "session_token": "", "profile": ""},
                "s3://bucket-002": {"secret_key": "secret2", "key_id": "key2", "region": "region2",
                                    "session_token": "token2", "profile": "profile2"},
                "s3://bucket-002/a": {"secret_key": "secretA", "key_id": "keyA"},
                "s3://https://host:443/b": {"secret_key": "secretB", "key_id": "keyB"}
              },
              "as": {"": {"account_str": "AZURE_STORAGE_ACCOUNT", "account_key": "AZURE_STORAGE_KEY"}}
            }
            """;

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({
        "s3://bucket-002/models, key2",
        "s3://bucket-002/abc, keyA",
        "s3://bucket-002, key2",
        "s3://bucket-00, key0",
        "s3://https://host:443/b/c, keyB",
        "s3://http://host:443/b/c, key0",
    })
    void takesTheLongestNameOfTheFileThatTheUrlBeginsWith(String url, String key) throws IOException {
        assertThat(read(url, FILE).keyId()).isEqualTo(key);
    }

    @Test
    void readsAllFields() throws IOException {
        assertThat(read("s3://bucket-002/m", FILE))
                .isEqualTo(new S3Credentials("key2", "secret2", "token2", "profile2", "region2"));
    }

    @Test
    void theFileReplacesTheEnvironment() throws IOException {
        Path file = Files.writeString(directory.resolve("c.json"), "{\"s3\": {\"\": {\"profile\": \"p\"}}}");

        S3Credentials credentials = S3Credentials.of(
                "s3://b",
                Map.of(
                        "TRITON_CLOUD_CREDENTIAL_PATH",
                        file.toString(),
                        "AWS_ACCESS_KEY_ID",
                        "key",
                        "AWS_SECRET_ACCESS_KEY",
                        "secret"));

        assertThat(credentials).isEqualTo(new S3Credentials("", "", "", "p", ""));
    }

    @Test
    void readsTheEnvironmentWithoutAFile() {
        assertThat(S3Credentials.of(
                        "s3://b",
                        Map.of(
                                "AWS_ACCESS_KEY_ID", "key",
                                "AWS_SECRET_ACCESS_KEY", "secret",
                                "AWS_SESSION_TOKEN", "token",
                                "AWS_DEFAULT_REGION", "region",
                                "AWS_PROFILE", "profile")))
                .isEqualTo(new S3Credentials("key", "secret", "token", "profile", "region"));
    }

    @Test
    void reportsAUrlWithoutAnEntry() {
        assertThatThrownBy(() -> read("s3://other", "{\"s3\": {\"s3://bucket\": {}}}"))
                .hasMessageStartingWith("Cannot match credential for path  s3://other (expected: ");
        assertThatThrownBy(() -> read("s3://other", "{}")).hasMessageStartingWith("Cannot match credential");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "[]",
                "{\"s3\": []}",
                "{\"s3\": {\"\": \"hidden-secret\"}}",
                "{\"s3\": {\"\": {\"secret_key\": 1234567}}}",
                "{\"s3\": {\"\": {\"secret_key\": hidden-secret}}}",
                "{\"s3\": {\"\": {\"secret_key\": \"hidden-secret",
            })
    void reportsAFileOfAnotherFormWithoutItsContent(String content) {
        assertThatThrownBy(() -> read("s3://b", content))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("TRITON_CLOUD_CREDENTIAL_PATH")
                .hasMessageNotContainingAny("hidden-secret", "1234567");
    }

    @Test
    void reportsAFileThatIsMissing() {
        assertThatThrownBy(() ->
                        S3Credentials.of("s3://b", Map.of("TRITON_CLOUD_CREDENTIAL_PATH", directory + "/missing")))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("missing");
    }

    @Test
    void neverShowsASecret() {
        assertThat(new S3Credentials("AKIA", "secret", "token", "", "").toString())
                .doesNotContain("AKIA", "secret", "token");
    }

    private S3Credentials read(String url, String content) throws IOException {
        Path file = Files.writeString(directory.resolve("credentials.json"), content);
        return S3Credentials.of(url, Map.of("TRITON_CLOUD_CREDENTIAL_PATH", file.toString()));
    }
}
