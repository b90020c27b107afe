package dev.nereid.scheduler.memory;

import java.lang.classfile.ClassFile;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.invoke.MethodHandles;

/**
 * Checks that the stack of a plugin has room for a call into the scheduler. Safe for use by any thread.
 *
 * <p>A call that completes a request takes a step that no other thread can take, and then delivers the event. If the
 * stack ended between the two, the request would be lost. So calls that change something check the stack first: either
 * the plugin gets a {@link StackOverflowError} and nothing has changed, or the call does not reach the end of the stack.
 *
 * <p>The check calls a method with very many local variables, which a source file would have to name. The JVM finds the
 * end of the stack as it enters that method: interpreted code needs the frame, and compiled code makes sure that it
 * could go on interpreted. A check takes some nanoseconds in compiled code.
 */
public final class StackReserve {
    /** The free stack that a call needs, in bytes. */
    private static final int SIZE = 32 << 10;

    /** The length of a method that compilers do not inline: a frame that calls no other method needs no stack. */
    private static final int NOT_INLINED = 400;

    private static final Runnable FRAME = frame();

    private StackReserve() {}

    /**
     * Checks the stack of the calling thread. The first call of a process needs much stack itself: the start of a server
     * makes it.
     *
     * @throws StackOverflowError if less is left than a call of the scheduler needs
     */
    public static void require() {
        FRAME.run();
    }

    private static Runnable frame() {
        ClassDesc type = ClassDesc.of(StackReserve.class.getPackageName(), "StackFrame");
        MethodTypeDesc action = MethodTypeDesc.of(ConstantDescs.CD_void);
        byte[] bytes = ClassFile.of()
                .build(
                        type,
                        made -> made.withInterfaceSymbols(ClassDesc.of(Runnable.class.getName()))
                                .withMethodBody(
                                        ConstantDescs.INIT_NAME,
                                        action,
                                        0,
                                        code -> code.aload(0)
                                                .invokespecial(ConstantDescs.CD_Object, ConstantDescs.INIT_NAME, action)
                                                .return_())
                                .withMethodBody("called", action, ClassFile.ACC_STATIC, code -> {
                                    for (int i = 0; i < NOT_INLINED; i++) {
                                        code.nop();
                                    }
                                    code.return_();
                                })
                                .withMethodBody(
                                        "run",
                                        action,
                                        ClassFile.ACC_PUBLIC,
                                        code -> code.iconst_0()
                                                .istore(SIZE / Long.BYTES - 1)
                                                .invokestatic(type, "called", action)
                                                .return_()));
        try {
            MethodHandles.Lookup made = MethodHandles.lookup().defineHiddenClass(bytes, true);
            return (Runnable) made.lookupClass().getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}
