package dev.nereid.server.control;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** How many loads of a start are under way. */
final class LoadBatchTest {
    private final Map<String, CompletableFuture<Void>> loads = new LinkedHashMap<>();
    private final LoadBatch batch = new LoadBatch(List.of("a", "b", "c", "d", "e", "f"), model -> {
        CompletableFuture<Void> load = new CompletableFuture<>();
        loads.put(model, load);
        return load;
    });

    private List<String> begun() {
        return new ArrayList<>(loads.keySet());
    }

    private void end(String model) {
        Objects.requireNonNull(loads.get(model)).complete(null);
    }

    @Test
    void beginsALoadWhenAnotherEnds() {
        batch.begin(2);
        assertThat(begun()).containsExactly("a", "b");

        end("b");
        assertThat(begun()).containsExactly("a", "b", "c");
    }

    @Test
    void beginsOneMoreForEachThatIsPausedUntilItGoesOn() {
        batch.begin(2);
        batch.extend();
        assertThat(begun()).containsExactly("a", "b", "c");

        end("c");
        assertThat(begun()).as("the window is as large as before").containsExactly("a", "b", "c", "d");
        batch.reduce();
        end("b");
        assertThat(begun()).as("one less is under way").hasSize(4);
        end("a");
        assertThat(begun()).hasSize(5);
    }
}
