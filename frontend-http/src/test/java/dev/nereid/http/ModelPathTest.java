package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Raw paths of models. */
class ModelPathTest {
    @ParameterizedTest
    @CsvSource({
        "/v2/models/m, m, '', ''",
        "/v2/models/m/infer, m, '', infer",
        "/v2/models/m/versions/3, m, 3, ''",
        "/v2/models/m/versions/03/config, m, 03, config",
        "/v2/models/m/versions/latest/infer, m, '', infer",
        "/v2/models/%73imple, %73imple, '', ''",
        "/v2/models/a%2Fb/ready, a%2Fb, '', ready",
        "/v2/models/versions/infer, versions, '', infer",
        "/v2/models/m/infer/, m, '', infer/",
        "/v2/models/m/versions, m, '', versions",
    })
    void parsesPaths(String path, String model, String version, String verb) {
        assertThat(ModelPath.parse(path)).contains(new ModelPath(model, version, verb));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/v2/models",
                "/v2/models/",
                "/v2/models/m/",
                "/v2/models//infer",
                "/v2/models/m/versions/",
                "/v2/models/m/versions/abc/ready",
                "/v2/models/m/versions/-1",
                "/v2/models/m/versions/1.5",
                "/v2/models/m/versions/1/",
                "/v2/models/m/versions//infer",
                "/v2",
                "//v2/models/m",
            })
    void parsesNoOtherPaths(String path) {
        assertThat(ModelPath.parse(path)).isEmpty();
    }
}
