package dev.nereid.storage.s3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.net.URI;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class S3LocationTest {
    @ParameterizedTest
    @CsvSource(delimiter = '|', nullValues = "-", textBlock = """
            s3://bucket                                  | -                        | bucket     | ''
            s3://bucket/                                 | -                        | bucket     | ''
            s3://bucket/path/to/models                   | -                        | bucket     | path/to/models/
            s3://bucket//path///models//                 | -                        | bucket     | path/models/
            s3://bucket.with.dots/m                      | -                        | bucket.with.dots | m/
            s3://bucket/a b+c%20ä                        | -                        | bucket     | a b+c%20ä/
            s3://host:9000/bucket                        | http://host:9000         | bucket     | ''
            s3://host:9000/bucket/path/                  | http://host:9000         | bucket     | path/
            s3://127.0.0.1:9000/bucket/path              | http://127.0.0.1:9000    | bucket     | path/
            s3://[::1]:9000/bucket/path                  | http://[::1]:9000        | bucket     | path/
            s3://http://host:9000/bucket/path            | http://host:9000         | bucket     | path/
            s3://https://host:9000/bucket/path           | https://host:9000        | bucket     | path/
            s3://https://host.example.com/bucket/path    | https://host.example.com | bucket     | path/
            s3://https://host:443//bucket//path          | https://host:443         | bucket     | path/
            """)
    void readsTheFormsOfTheReference(String url, String endpoint, String bucket, String prefix) {
        S3Location location = S3Location.parse(url);

        assertThat(location.endpoint().map(URI::toString).orElse(null)).isEqualTo(endpoint);
        assertThat(location.bucket()).isEqualTo(bucket);
        assertThat(location.prefix()).isEqualTo(prefix);
        assertThat(location.key("m/1/x")).isEqualTo(prefix + "m/1/x");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "s3://",
                "s3:///",
                "s3://host:9000",
                "s3://host:9000/",
                "s3://host:0/bucket",
                "s3://host:99999/bucket",
                "s3://https://host:9000/",
                "s3://https://",
                "s3://ftp://host:9000/bucket",
                "s3://buc ket/path",
                "s3://user:secret@host:9000/bucket",
                "s3://bucket/a\nb",
                "gs://bucket/path",
            })
    void refusesOthers(String url) {
        assertThatThrownBy(() -> S3Location.parse(url))
                .hasMessageContaining("expected: s3://BUCKET[/PATH]")
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }
}
