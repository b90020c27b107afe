package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

final class ApiAccessTest {
    @ParameterizedTest
    @EnumSource(ApiGroup.class)
    void allowsEveryRequestUnlessRestricted(ApiGroup group) {
        assertThat(ApiAccess.OPEN.missingHeader(group, Map.<String, String>of()::get))
                .isEmpty();
        assertThat(ApiGroup.ofText(group.toString())).contains(group);
    }

    @Test
    void requiresTheSecretForEachGroupOfARestriction() {
        ApiAccess access = ApiAccess.parse(List.of("health,model-repository:admin-key=a=b", "inference:key="));

        assertThat(access.missingHeader(ApiGroup.HEALTH, Map.<String, String>of()::get))
                .contains("admin-key");
        assertThat(access.missingHeader(ApiGroup.MODEL_REPOSITORY, Map.of("admin-key", "a")::get))
                .contains("admin-key");
        assertThat(access.missingHeader(ApiGroup.MODEL_REPOSITORY, Map.of("admin-key", "a=b")::get))
                .isEmpty();
        assertThat(access.missingHeader(ApiGroup.INFERENCE, Map.<String, String>of()::get))
                .contains("key");
        assertThat(access.missingHeader(ApiGroup.INFERENCE, Map.of("key", "")::get))
                .isEmpty();
        assertThat(access.missingHeader(ApiGroup.METADATA, Map.<String, String>of()::get))
                .isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "health | 'health' (expected: group[,group...]:header=secret)",
                ":a=b | ':a=b' (expected: group[,group...]:header=secret)",
                "health:=b | 'health:=b' (expected: group[,group...]:header=secret)",
                "health:a | 'health:a' (expected: group[,group...]:header=secret)",
                "wealth:a=b | unknown restricted protocol 'wealth' (expected: one of [health, metadata, inference, shared-memory, model-config,"
                        + " model-repository, statistics, trace, logging])",
                "health,:a=b | unknown restricted protocol '' (expected: one of [health, metadata, inference, shared-memory, model-config,"
                        + " model-repository, statistics, trace, logging])",
                "health,health:a=b | restricted protocol 'health' can not be specified in multiple config groups",
            })
    void refusesMalformedRestrictions(String text, String error) {
        assertThatThrownBy(() -> ApiAccess.parse(List.of(text)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(error);
    }
}
