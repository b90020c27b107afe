package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every method of an observer is forwarded, those with a default too. */
class ForwardingObserverTest {
    private final List<Method> calls = new ArrayList<>();
    private @Nullable Object result;

    static Stream<Method> methods() {
        return Arrays.stream(ResponseObserver.class.getMethods())
                .filter(method -> !Modifier.isStatic(method.getModifiers()));
    }

    @ParameterizedTest
    @MethodSource("methods")
    void forwards(Method method) throws ReflectiveOperationException {
        ResponseObserver target = (ResponseObserver) Proxy.newProxyInstance(
                ResponseObserver.class.getClassLoader(),
                new Class<?>[] {ResponseObserver.class},
                (proxy, called, arguments) -> {
                    calls.add(called);
                    result = sample(called.getReturnType());
                    return result;
                });
        ResponseObserver wrapper = new ForwardingObserver(target) {};

        Object returned = method.invoke(wrapper, new Object[method.getParameterCount()]);

        assertThat(calls).containsExactly(method);
        assertThat(returned).isSameAs(result);
    }

    private static @Nullable Object sample(Class<?> type) {
        if (type.isEnum()) {
            return type.getEnumConstants()[0];
        }
        if (type == boolean.class) {
            return true; // not the default of any method
        }
        return type.isInterface()
                ? Proxy.newProxyInstance(
                        type.getClassLoader(), new Class<?>[] {type}, (proxy, called, arguments) -> null)
                : null;
    }
}
