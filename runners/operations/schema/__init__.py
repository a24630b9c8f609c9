"""Operations on the reviewed schema: show, infer, diff, accept."""
