package dev.nereid.distribution.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.PluginExtension;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ExtensionTableTest {
    @Test
    void namesAgentsAndStorages() {
        String table = ExtensionTable.of(List.of(
                new PluginExtension(PluginExtension.Kind.AGENT, "decrypt", "vault"),
                new PluginExtension(PluginExtension.Kind.STORAGE, "s3://", "s3")));

        assertThat(table.lines().map(line -> line.replaceAll(" +", " ").strip()))
                .contains("decrypt AGENT vault", "s3:// STORAGE s3")
                .first()
                .asString()
                .startsWith("EXTENSION KIND PLUGIN");
        assertThat(ExtensionTable.of(List.of())).isEmpty();
    }
}
