package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.parameter.BackendParameters;
import dev.nereid.api.parameter.ModelParameters;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class PluginBackendContextTest {
    @Test
    void suggestsTheSettingOfABackendThatIsMeant() {
        ModelParameters settings = settings(Map.of("max-widht", "3", "default-max-batch-siz", "2", "max-height", "4"));

        assertThat(PluginBackendContext.misspelt(settings, Set.of("max-widht", "default-max-batch-siz", "max-height")))
                .containsExactly(
                        "--backend-config=linear,default-max-batch-siz: unknown setting has no effect;"
                                + " did you mean 'default-max-batch-size'?",
                        "--backend-config=linear,max-widht: unknown setting has no effect; did you mean 'max-width'?");
    }

    @Test
    void suggestsNothingForSettingsOfAllBackendsAndOfTheServer() {
        ModelParameters settings = settings(Map.of("max-widht", "3", "default-max-batch-size", "4", "labels", "5"));

        assertThat(PluginBackendContext.misspelt(settings, Set.of("default-max-batch-size", "labels")))
                .isEmpty();
    }

    /** The settings of a backend that reads two. */
    private static ModelParameters settings(Map<String, String> values) {
        ModelParameters settings = ModelParameters.of(BackendParameters.of("linear", values));
        settings.integer("max-width", 1, 9);
        settings.integer("max-height", 1, 9);
        return settings;
    }
}
