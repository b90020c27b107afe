package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class UnloadedModelsTest {
    private final UnloadedModels models = new UnloadedModels(2);

    @Test
    void forgetsTheModelThatWasUnloadedFirst() {
        assertThat(models.add("a")).isEmpty();
        assertThat(models.add("b")).isEmpty();
        assertThat(models.add("a")).as("is the latest one now").isEmpty();

        assertThat(models.add("c")).contains("b");
        assertThat(models.add("d")).contains("a");
    }

    @Test
    void countsNoModelThatIsLoadedAgain() {
        models.add("a");
        models.add("b");
        models.remove("a");

        assertThat(models.add("c")).isEmpty();
        assertThat(models.add("d")).contains("b");
    }
}
