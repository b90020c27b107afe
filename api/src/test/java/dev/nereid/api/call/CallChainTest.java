package dev.nereid.api.call;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class CallChainTest {
    private final Hold first = new Hold("first", Hold.Kind.THREAD);
    private final Hold second = new Hold("second", Hold.Kind.EXECUTION);

    @Test
    void hasTheLongestPathAndAllExecutionsOfABatch() {
        CallChain shorter = CallChain.NONE.with(first).with("a");
        CallChain longer = CallChain.NONE.with(second).with("b").with(first).with("c");

        CallChain both =
                CallChain.NONE.join(shorter).join(longer).join(CallChain.NONE).with(second);

        assertThat(both.models()).containsExactly("b", "c");
        assertThat(both.holds()).containsExactly(first, second);
        assertThat(longer.join(shorter).models()).containsExactly("b", "c");
        assertThat(CallChain.NONE.isEmpty()).isTrue();
        assertThat(both.isEmpty()).isFalse();
    }

    @Test
    void leavesOutTheMiddleOfALongPath() {
        CallChain chain = CallChain.NONE;
        for (int i = 0; i < 30; i++) {
            chain = chain.with("m" + i);
        }

        assertThat(CallChain.NONE.with("a").with("b").path("a")).isEqualTo("a -> b -> a");
        assertThat(chain.path("end"))
                .startsWith("m0 -> m1 -> ")
                .contains(" -> m7 -> ... -> m23 -> ")
                .endsWith("m29 -> end");
    }
}
