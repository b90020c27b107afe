package dev.nereid.benchmarks.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class OptionsTest {
    @Test
    void measuresEverythingWithHalfTheProcessorsAsEventLoops() {
        Options options = Options.parse(List.of(), 8);

        assertThat(options.sections()).containsExactlyInAnyOrder(Section.values());
        assertThat(options.pace()).isEqualTo(Pace.DEFAULT);
        assertThat(options.eventLoops()).isEqualTo(4);
        assertThat(options.onnxThreads()).isEqualTo(8);
        assertThat(options.save()).isFalse();
        assertThat(options.help()).isFalse();
    }

    @Test
    void hasAnEventLoopOnOneProcessor() {
        assertThat(Options.parse(List.of(), 1).eventLoops()).isEqualTo(1);
    }

    @Test
    void takesValuesInBothForms() {
        Options options = Options.parse(
                List.of("--only", "http,start", "--rounds=3", "--event-loops", "2", "--onnx-threads=5", "--save"), 8);

        assertThat(options.sections()).containsExactlyInAnyOrder(Section.HTTP, Section.START);
        assertThat(options.pace().rounds()).isEqualTo(3);
        assertThat(options.eventLoops()).isEqualTo(2);
        assertThat(options.onnxThreads()).isEqualTo(5);
        assertThat(options.save()).isTrue();
    }

    @Test
    void changesOnlyThePartOfThePaceThatIsNamed() {
        Pace pace = Options.parse(List.of("--quick", "--measure=20"), 2).pace();

        assertThat(pace).isEqualTo(new Pace(Duration.ofSeconds(3), Duration.ofSeconds(20), 1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--fast | --fast: unknown (expected: a flag of --help)",
                "--only=http,https | --only: 'https' (expected: some of http,json,codec,scheduler,sequences,ensembles,waiting,shm,tls,grpc,mlp,batching,squeezenet,tensorflow,pytorch,python,start,models,minute)",
                "--rounds=0 | --rounds: 0 (expected: >= 1)",
                "--measure=soon | --measure: 'soon' (expected: a whole number)",
                "--warm-up | --warm-up: nothing (expected: a value)"
            })
    void namesWhatIsWrong(String argument, String message) {
        assertThatThrownBy(() -> Options.parse(List.of(argument), 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    @Test
    void refusesAValueForASwitch() {
        assertThatThrownBy(() -> Options.parse(List.of("--save=true"), 2)).hasMessageStartingWith("true: unknown");
    }
}
