package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.process.StartException;
import dev.nereid.server.options.DelayOptions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class DelayVariablesTest {
    @Test
    void takesANumberOfRequests() throws StartException {
        assertThat(DelayVariables.delay(Map.of())).isEqualTo(DelayOptions.NONE);
        assertThat(requests("")).isZero();
        assertThat(requests("0")).isZero();
        assertThat(requests("12")).isEqualTo(12);
        assertThat(requests(" 3 ")).isEqualTo(3);
    }

    @Test
    void namesWhatIsNoNumberOfRequests() {
        for (String wrong : List.of("-1", "many", "3x", "1.5", "2147483648")) {
            assertThatThrownBy(() -> requests(wrong))
                    .isInstanceOf(StartException.class)
                    .hasMessage("TRITONSERVER_DELAY_SCHEDULER: '" + wrong
                            + "' (expected: a number of requests, from 0 to 2147483647)");
        }
    }

    @Test
    void takesTheBacklogByItself() throws StartException {
        assertThat(DelayVariables.delay(Map.of(DelayVariables.VARIABLE, "12", DelayVariables.BACKLOG, "5")))
                .isEqualTo(new DelayOptions(12, 5));
        assertThatThrownBy(() -> DelayVariables.delay(Map.of(DelayVariables.BACKLOG, "x")))
                .isInstanceOf(StartException.class)
                .hasMessage("TRITONSERVER_BACKLOG_DELAY_SCHEDULER: 'x' (expected: a number of requests, from 0 to"
                        + " 2147483647)");
    }

    private static int requests(String value) throws StartException {
        return DelayVariables.delay(Map.of(DelayVariables.VARIABLE, value)).requests();
    }
}
