package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;

import io.vertx.core.MultiMap;
import org.junit.jupiter.api.Test;

final class ResponseHeaderCacheTest {
    private final ResponseHeaderCache headers = new ResponseHeaderCache();

    @Test
    void keepsTheHeadersOfLengthsThatComeTwiceInARow() {
        assertThat(headers.find(100, 1124)).isNull();

        MultiMap found = headers.find(100, 1124);

        assertThat(found).isNotNull();
        assertThat(found.get("Inference-Header-Content-Length")).isEqualTo("100");
        assertThat(found.get("Content-Length")).isEqualTo("1124");
        assertThat(found.get("Content-Type")).isEqualTo("application/octet-stream");
        assertThat(headers.find(100, 1124)).isSameAs(found);
    }

    @Test
    void keepsNothingOfLengthsThatAlternateInOnePlace() {
        for (int i = 0; i < 3; i++) {
            assertThat(headers.find(100, 1124)).isNull();
            assertThat(headers.find(100, 1124 + 64)).isNull();
        }
    }
}
