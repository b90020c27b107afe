package dev.nereid.server.dependency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which models are loaded and unloaded with others, and in which order. */
final class ModelDependenciesTest {
    private final ModelDependencies dependencies = new ModelDependencies();

    private void load(String model, Set<String> needed) {
        dependencies.begin(model, needed);
        dependencies.end(model, true, true);
    }

    /** Loads outer, which needs inner and net; inner needs scale. */
    private void loadPipelines() {
        dependencies.request("outer");
        load("outer", Set.of("inner", "net"));
        load("inner", Set.of("scale"));
        load("net", Set.of());
        load("scale", Set.of());
    }

    @Test
    void unloadsWhatNeedsAModelBeforeIt() {
        loadPipelines();

        ModelDependencies.Unloads unloads = dependencies.unload("scale", false);

        assertThat(unloads.before()).containsExactly("outer", "inner");
        assertThat(unloads.after()).isEmpty();
    }

    @Test
    void loadsAgainWhatWaitsForAModel() {
        loadPipelines();
        assertThat(dependencies.waitingFor("scale")).isEmpty();
        dependencies.unload("scale", false);

        load("scale", Set.of());
        assertThat(dependencies.waitingFor("scale")).containsExactly("inner", "outer");
        assertThat(dependencies.waitingFor("net")).containsExactly("outer");

        load("inner", Set.of("scale"));
        assertThat(dependencies.waitingFor("scale")).containsExactly("outer");
        load("outer", Set.of("inner", "net"));
        assertThat(dependencies.waitingFor("scale")).isEmpty();
    }

    @Test
    void doesNotLoadWhatWasUnloadedForItsOwnSake() {
        loadPipelines();
        dependencies.unload("scale", false);
        dependencies.unload("outer", false);

        assertThat(dependencies.waitingFor("scale")).containsExactly("inner");
    }

    @Test
    void unloadsWhatIsNotNeededAnyMoreAfterAModel() {
        loadPipelines();

        ModelDependencies.Unloads unloads = dependencies.unload("outer", true);

        assertThat(unloads.before()).isEmpty();
        assertThat(unloads.after()).containsExactlyInAnyOrder("inner", "net", "scale");
        assertThat(unloads.after().indexOf("inner")).isLessThan(unloads.after().indexOf("scale"));
        for (String model : unloads.after()) {
            assertThat(dependencies.unloadUnused(model)).as(model).isTrue();
        }
    }

    @Test
    void keepsWhatWasRequestedOrIsNeededByOthers() {
        loadPipelines();
        dependencies.request("net");
        dependencies.request("second");
        load("second", Set.of("scale"));

        assertThat(dependencies.unload("outer", true).after()).containsExactly("inner");
        assertThat(dependencies.unload("second", true).after()).isEmpty(); // inner has not been unloaded yet
        assertThat(dependencies.unloadUnused("inner")).isTrue();
        assertThat(dependencies.unloadUnused("net")).isFalse();
        assertThat(dependencies.unloadUnused("scale")).isTrue();
    }

    /** Between the decision and the unload, a client may load the model, or another one that needs it. */
    @Test
    void checksAgainBeforeItUnloadsUnneededModels() {
        loadPipelines();
        List<String> after = dependencies.unload("outer", true).after();
        assertThat(after).contains("net", "scale");

        dependencies.request("net");
        load("late", Set.of("scale"));

        assertThat(dependencies.unloadUnused("net")).isFalse();
        assertThat(dependencies.unloadUnused("scale")).isFalse();
    }

    @Test
    void aLoadThatWouldCloseACycleChangesNothing() {
        loadPipelines();

        assertThatThrownBy(() -> dependencies.begin("scale", Set.of("outer")))
                .isInstanceOf(InferenceException.class)
                .hasMessage("circular dependency between ensembles: scale -> outer -> inner -> scale");

        assertThat(dependencies.unload("scale", false).before()).containsExactly("outer", "inner");
    }

    @Test
    void aModelRequiresOthersDuringItsLoad() {
        dependencies.begin("caller", Set.of());
        dependencies.require("caller", "net");
        assertThat(dependencies.needed("caller")).containsExactly("net");
        assertThatThrownBy(() -> dependencies.begin("net", Set.of("caller")))
                .as("also before its end")
                .isInstanceOf(InferenceException.class);
        dependencies.end("caller", true, true);

        assertThat(dependencies.dependents("net")).containsExactly("caller");
        dependencies.begin("net", Set.of());
        assertThatThrownBy(() -> dependencies.require("net", "caller"))
                .isInstanceOf(InferenceException.class)
                .hasMessage("circular dependency between models: net -> caller -> net");
        dependencies.end("net", true, true);
        assertThat(dependencies.needed("net")).isEmpty();
    }

    /** A model that was unloaded with one that it requires waits for that again after a failure. */
    @Test
    void aModelRequiresWhatItsVersionsRequireAtTheEndOfItsLoad() {
        dependencies.begin("caller", Set.of());
        dependencies.require("caller", "net");
        dependencies.require("caller", "scale");
        dependencies.settle("caller", Set.of("scale", "unknown"));
        dependencies.end("caller", true, true);
        assertThat(dependencies.needed("caller")).containsExactly("scale");

        dependencies.unload("scale", false);
        dependencies.begin("caller", Set.of());
        dependencies.require("caller", "scale");
        dependencies.end("caller", false, false);
        assertThat(dependencies.waitingFor("scale")).containsExactly("caller");
    }

    @Test
    void takesWhatAModelNeedsFromItsLastLoad() {
        loadPipelines();
        load("outer", Set.of("net"));

        assertThat(dependencies.unload("scale", false).before()).containsExactly("inner");
        assertThat(dependencies.unload("net", false).before()).containsExactly("outer");
    }

    /** It serves on with what it was loaded with. */
    @Test
    void keepsWhatAModelNeedsWhoseNextLoadFails() {
        loadPipelines();

        dependencies.begin("inner", Set.of("other"));
        assertThat(dependencies.dependents("scale"))
                .as("it may be unloaded meanwhile")
                .contains("inner");
        assertThat(dependencies.dependents("other")).contains("inner");
        dependencies.end("inner", false, true);

        assertThat(dependencies.dependents("other")).isEmpty();
        assertThat(dependencies.unload("scale", false).before()).containsExactly("outer", "inner");
    }

    @Test
    void takesWhatAModelNeedsFromAFailedLoadIfItDoesNotServe() {
        dependencies.begin("outer", Set.of("scale"));
        dependencies.end("outer", false, false);
        dependencies.begin("outer", Set.of("net"));
        dependencies.end("outer", false, false);

        assertThat(dependencies.dependents("scale")).isEmpty();
        assertThat(dependencies.dependents("net")).containsExactly("outer");
    }

    @Test
    void waitsAgainAfterAFailedLoad() {
        loadPipelines();
        dependencies.unload("scale", false);

        dependencies.begin("inner", Set.of("scale"));
        dependencies.end("inner", false, false);

        assertThat(dependencies.isWaiting("inner")).isTrue();
        assertThat(dependencies.waitingFor("scale")).containsExactly("inner", "outer");
    }

    /** An unload that comes during a load unloads the model after it: then it waits. */
    @Test
    void waitsForAModelThatWasUnloadedDuringItsLoad() {
        loadPipelines();

        dependencies.begin("inner", Set.of("scale"));
        dependencies.unload("scale", false);
        dependencies.end("inner", true, true);

        assertThat(dependencies.waitingFor("scale")).containsExactly("inner", "outer");
    }
}
