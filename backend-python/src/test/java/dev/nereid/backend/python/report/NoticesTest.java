package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.testkit.RecordedLog;
import org.junit.jupiter.api.Test;

class NoticesTest {
    private final RecordedLog log = new RecordedLog();
    private final Notices notices = new Notices(log);

    private static FrameReader notice(long id, String name) {
        return SentFrames.frame(FrameType.NOTICE, 0, id, body -> body.text(name));
    }

    @Test
    void warnsOnceOfAnOutput() {
        notices.onNotice(notice(1, "scores"));
        notices.onNotice(notice(1, "scores"));

        assertThat(log.lines())
                .containsExactly(
                        "WARNING output 'scores' is not in the configuration of the model: no client receives it"
                                + " (expected: one of the configured outputs)");
    }

    @Test
    void boundsNamesAndTheirNumber() {
        notices.onNotice(notice(1, "a\nb" + "c".repeat(1000)));
        assertThat(log.lines())
                .singleElement()
                .asString()
                .startsWith("WARNING output 'a?bccc")
                .hasSizeLessThan(400);

        for (int i = 0; i < 2 * Notices.MAX_NAMES; i++) {
            notices.onNotice(notice(1, "out" + i));
        }
        assertThat(log.lines()).hasSize(Notices.MAX_NAMES);
    }

    @Test
    void ignoresUnknownKindsAndRefusesMalformedOnes() {
        notices.onNotice(notice(2, "a"));
        assertThat(log.lines()).isEmpty();
        assertThatThrownBy(() -> notices.onNotice(SentFrames.frame(FrameType.NOTICE, 0, 1, body -> body.u32(9))))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("output of a notice: 9 bytes");
    }
}
