package dev.nereid.server.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.repository.config.ModelConfigReader;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The instances that stay when a configuration has others. */
final class InstanceUpdateTest {
    private static final int NEW = InstanceUpdate.NEW;

    @Test
    void changesNothingForTheSameGroups() {
        InstanceUpdate update = update("count: 3 kind: KIND_CPU", "count: 3 kind: KIND_CPU");

        assertThat(update).isEqualTo(new InstanceUpdate(List.of(0, 1, 2), List.of()));
        assertThat(update.isEmpty()).isTrue();
    }

    @Test
    void matchesBySignature() {
        String group = "name: \"a\" count: 2 kind: KIND_CPU";
        assertThat(update(group, "name: \"b\" count: 2 kind: KIND_CPU").sources())
                .containsExactly(0, 1);
        assertThat(update(group, group + " host_policy: \"p\"").sources()).containsExactly(NEW, NEW);
        assertThat(update(group, group + " profile: \"1\"").sources()).containsExactly(NEW, NEW);
        assertThat(update(group, group + " passive: true").sources()).containsExactly(NEW, NEW);
        assertThat(update(group, group + " rate_limiter { priority: 2 }").sources())
                .containsExactly(NEW, NEW);
        assertThat(update(group, "name: \"a\" count: 2 kind: KIND_MODEL").sources())
                .containsExactly(NEW, NEW);
        assertThat(update(group, group + " host_policy: \"p\"").removed()).containsExactly(0, 1);
    }

    @Test
    void addsWhatIsMissing() {
        assertThat(update("count: 1 kind: KIND_CPU", "count: 3 kind: KIND_CPU"))
                .isEqualTo(new InstanceUpdate(List.of(0, NEW, NEW), List.of()));
    }

    @Test
    void removesTheLastOfAGroupThatShrinks() {
        InstanceUpdate update = update("count: 3 kind: KIND_CPU", "count: 1 kind: KIND_CPU");

        assertThat(update).isEqualTo(new InstanceUpdate(List.of(0), List.of(1, 2)));
        assertThat(update.isEmpty()).isFalse();
    }

    @Test
    void keepsNamesWherePossible() {
        InstanceUpdate update = InstanceUpdate.of(
                plans("name: \"a\" kind: KIND_CPU count: 1", "name: \"b\" kind: KIND_CPU count: 1"),
                plans("name: \"b\" kind: KIND_CPU count: 1", "name: \"c\" kind: KIND_CPU count: 2"));

        assertThat(update).isEqualTo(new InstanceUpdate(List.of(1, 0, NEW), List.of()));
    }

    @Test
    void distinguishesDevices() {
        String group = "count: 2 kind: KIND_GPU gpus: [ 0, 1 ]";
        assertThat(update(group, "count: 1 kind: KIND_GPU gpus: [ 0, 1 ]"))
                .isEqualTo(new InstanceUpdate(List.of(0, 1), List.of(2, 3)));
        assertThat(update(group, "count: 3 kind: KIND_GPU gpus: [ 0, 1 ]"))
                .isEqualTo(new InstanceUpdate(List.of(0, 1, 2, 3, NEW, NEW), List.of()));
    }

    @Test
    void usesEachInstanceOnce() {
        InstanceUpdate update = InstanceUpdate.of(
                plans("name: \"a\" kind: KIND_CPU count: 1"),
                plans("name: \"b\" kind: KIND_CPU count: 1", "name: \"a\" kind: KIND_CPU count: 1"));

        assertThat(update).isEqualTo(new InstanceUpdate(List.of(NEW, 0), List.of()));
    }

    private static InstanceUpdate update(String before, String after) {
        return InstanceUpdate.of(plans(before), plans(after));
    }

    private static List<InstancePlan> plans(String... groups) {
        StringBuilder text = new StringBuilder("name: \"m\"\n");
        for (String group : groups) {
            text.append("instance_group { ").append(group).append(" }\n");
        }
        return InstancePlan.of(ModelConfigReader.parse("test/config.pbtxt", text.toString()));
    }
}
