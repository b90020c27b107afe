package dev.nereid.server.dependency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Models that need others: order, cycles and what is unloaded together. */
final class DependencyGraphTest {
    private static final DependencyGraph PIPELINES = DependencyGraph.EMPTY
            .with("inner", List.of("scale", "net"))
            .with("outer", List.of("decode", "inner", "net"))
            .with("other", List.of("scale"));

    @Test
    void ordersWhatAModelNeeds() {
        assertThat(PIPELINES.loadOrder("outer")).containsExactly("decode", "net", "scale", "inner", "outer");
        assertThat(PIPELINES.loadOrder("net")).containsExactly("net");
        assertThat(PIPELINES.loadOrder("unknown")).containsExactly("unknown");
    }

    @Test
    void ordersWhatNeedsAModel() {
        assertThat(PIPELINES.dependents("scale")).containsExactly("outer", "inner", "other");
        assertThat(PIPELINES.dependents("net")).containsExactly("outer", "inner");
        assertThat(PIPELINES.dependents("outer")).isEmpty();
        assertThat(PIPELINES.without("outer").dependents("net")).containsExactly("inner");
    }

    @Test
    void findsWhatOnlyAModelNeeded() {
        assertThat(PIPELINES.neededOnlyBy("outer", Set.of())).containsExactly("inner", "net", "decode");
        assertThat(PIPELINES.neededOnlyBy("outer", Set.of("inner"))).containsExactly("decode");
        assertThat(PIPELINES.neededOnlyBy("outer", Set.of("net", "decode"))).containsExactly("inner");
        assertThat(PIPELINES.neededOnlyBy("inner", Set.of())).isEmpty();
        assertThat(PIPELINES.without("other").neededOnlyBy("outer", Set.of()))
                .containsExactly("inner", "scale", "net", "decode");
        assertThat(PIPELINES.neededOnlyBy("scale", Set.of())).isEmpty();
    }

    @Test
    void refusesCycles() {
        assertThatThrownBy(() -> DependencyGraph.EMPTY.with("a", List.of("a")))
                .isInstanceOf(InferenceException.class)
                .hasMessage("circular dependency between ensembles: a -> a");
        assertThatThrownBy(() -> PIPELINES.with("scale", List.of("outer")))
                .hasMessage("circular dependency between ensembles: scale -> outer -> inner -> scale");
        assertThat(PIPELINES.with("scale", List.of("decode")).loadOrder("inner"))
                .containsExactly("net", "decode", "scale", "inner");
    }

    /** Each of forty layers needs both models of the next: no search may follow every path. */
    @Test
    void searchesEachModelOnce() {
        DependencyGraph graph = DependencyGraph.EMPTY;
        for (int layer = 0; layer < 40; layer++) {
            List<String> next = List.of("a" + (layer + 1), "b" + (layer + 1));
            graph = graph.with("a" + layer, next).with("b" + layer, next);
        }
        DependencyGraph whole = graph;

        assertThat(whole.loadOrder("a0")).hasSize(81);
        assertThat(whole.dependents("a40")).hasSize(80);
        assertThatThrownBy(() -> whole.with("a40", List.of("a0")))
                .hasMessageStartingWith("circular dependency between ensembles: a40 -> a0 -> ");
    }
}
